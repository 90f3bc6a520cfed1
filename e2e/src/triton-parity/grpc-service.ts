import { basename, join } from 'node:path'
import { Client, credentials, Metadata, status } from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { ROOT } from '../serving.ts'
import type { Answer, GrpcCall } from './case.ts'

const PROTOS = join(ROOT, 'services/protocol/proto')
/** A call without an answer is an answer, too. */
const PATIENCE_MS = 20_000
const LIMIT_BYTES = 2 ** 31 - 1
/** How a message becomes JSON: unset fields stay away, bytes are base64, and 64-bit integers strings. */
const AS_JSON = { longs: String, enums: String, bytes: String } as const

const root = new protobuf.Root()
root.resolvePath = (_origin, target) => join(PROTOS, basename(target))
root.loadSync(['grpc_service.proto', 'health.proto'], { keepCase: true }).resolveAll()

interface Method {
  readonly path: string
  readonly isStream: boolean
  readonly request: protobuf.Type
  readonly response: protobuf.Type
}

function methodOf(rpc: string): Method {
  const name = rpc === 'Check' ? 'grpc.health.v1.Health' : 'inference.GRPCInferenceService'
  const method = root.lookupService(name).methods[rpc]
  const { resolvedRequestType: request, resolvedResponseType: response } = method ?? {}
  if (request === undefined || request === null || response === undefined || response === null) {
    throw new Error(`there is no RPC ${rpc}`)
  }
  return { path: `/${name}/${rpc}`, isStream: method?.responseStream === true, request, response }
}

function encode({ request }: Method, call: GrpcCall): readonly Buffer[] {
  if (call.bytes !== undefined) return [Buffer.from(call.bytes, 'base64')]
  return call.requests.map((message) =>
    Buffer.from(request.encode(request.fromObject(Object(message))).finish()),
  )
}

export type GrpcService = ReturnType<typeof openGrpcService>

function pass(bytes: Buffer): Buffer {
  return bytes
}

/** A client that calls by the published protos, with a codec of its own. */
export function openGrpcService(port: number) {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': LIMIT_BYTES,
    'grpc.max_send_message_length': LIMIT_BYTES,
    'grpc.use_local_subchannel_pool': 1,
  })
  return {
    close: (): void => client.close(),
    call: async (call: GrpcCall): Promise<Answer> => {
      const method = methodOf(call.rpc)
      const messages: unknown[] = []
      const metadata = new Metadata()
      for (const [key, value] of Object.entries(call.metadata ?? {})) metadata.set(key, value)
      const options = { deadline: Date.now() + PATIENCE_MS }
      return await new Promise((resolve) => {
        // A unary call is a stream with one message each way.
        const stream = client.makeBidiStreamRequest(method.path, pass, pass, metadata, options)
        stream.on('data', (bytes: Buffer) => {
          messages.push(method.response.toObject(method.response.decode(bytes), AS_JSON))
        })
        // The status says the same.
        stream.on('error', () => {})
        stream.on('status', ({ code, details }) => {
          const body = method.isStream ? { messages } : { message: messages[0] }
          resolve({
            code,
            ...(details !== '' && { text: details }),
            ...(code === status.OK || method.isStream ? body : {}),
          })
        })
        for (const bytes of encode(method, call)) stream.write(bytes)
        stream.end()
      })
    },
  }
}
