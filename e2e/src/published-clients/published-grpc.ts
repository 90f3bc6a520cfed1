import { execFileSync } from 'node:child_process'
import { credentials, makeClientConstructor, type ServiceError } from '@grpc/grpc-js'
import { loadFileDescriptorSetFromBuffer } from '@grpc/proto-loader'
import type { Test } from 'tap'
import { PYTHON } from '../triton-client.ts'

/** Prints the protos that NVIDIA's wheel has. */
const PROGRAM = `
import base64
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from tritonclient.grpc import model_config_pb2, service_pb2
files = FileDescriptorSet()
for module in (model_config_pb2, service_pb2):
    module.DESCRIPTOR.CopyToProto(files.file.add())
print(base64.b64encode(files.SerializeToString()).decode())
`

type Answer = Readonly<Record<string, unknown>>

/** A JavaScript client made from the published protos alone, as its users make one. */
export interface PublishedClient {
  call(method: string, request: object): Promise<Answer>
  /** Sends the requests and gives as many responses. */
  stream(requests: readonly object[]): Promise<readonly Answer[]>
}

/** Closed with the test. */
export function openPublishedClient(t: Test, port: number): PublishedClient {
  const text = execFileSync(PYTHON ?? '', ['-c', PROGRAM], { encoding: 'utf8' })
  const definition = loadFileDescriptorSetFromBuffer(Buffer.from(text, 'base64'), {
    keepCase: true,
    longs: String,
    enums: String,
  })
  const service = definition['inference.GRPCInferenceService']
  if (service === undefined || 'format' in service) throw new Error('the protos have no service')
  const PublishedService = makeClientConstructor(service, 'GRPCInferenceService')
  const client = new PublishedService(`127.0.0.1:${port}`, credentials.createInsecure())
  t.teardown(() => client.close())
  const method = (name: string) => {
    const found: unknown = Reflect.get(client, name)
    if (typeof found !== 'function') throw new Error(`the protos have no ${name}`)
    return found.bind(client)
  }
  return {
    call: (name, request) =>
      new Promise((resolve, reject) => {
        method(name)(request, (error: ServiceError | null, answer: Answer) => {
          if (error === null) resolve(answer)
          else reject(error)
        })
      }),
    stream: async (requests) => {
      const stream = method('ModelStreamInfer')()
      for (const request of requests) stream.write(request)
      stream.end()
      const answers: Answer[] = []
      for await (const answer of stream) answers.push(answer)
      return answers
    },
  }
}
