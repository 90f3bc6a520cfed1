import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { type ClientDuplexStream, type ServiceError, status } from '@grpc/grpc-js'
import { readReflection } from '@tutti/protocol'
import t from 'tap'
import { openTestServer, type TestServer } from '../testing/test-server.ts'

interface ReflectionAnswer {
  readonly file_descriptor_response?: { readonly file_descriptor_proto: readonly Buffer[] }
  readonly error_response?: { readonly error_code: number }
}

type ReflectionStream = ClientDuplexStream<object, ReflectionAnswer>

function reflect({ client }: TestServer, version: string): ReflectionStream {
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`
  const method = readReflection().methods.find((one) => one.path === path)
  if (method === undefined) throw new Error(`no method ${path}`)
  const { requestSerialize, responseDeserialize } = method
  return client.objects.makeBidiStreamRequest(path, requestSerialize, responseDeserialize)
}

function pass(bytes: Buffer): Buffer {
  return bytes
}

function failed(stream: ReflectionStream): Promise<ServiceError> {
  return new Promise((resolve) => stream.on('error', resolve).resume())
}

await t.test(
  'clients learn the services and messages by reflection, where it is offered',
  async (t) => {
    const served = await openTestServer(t, {}, { hasReflection: true })
    for (const version of ['v1', 'v1alpha']) {
      const stream = reflect(served, version)
      const ask = async (question: object): Promise<ReflectionAnswer> => {
        stream.write(question)
        const [answer] = await once(stream, 'data')
        return answer
      }
      t.match(await ask({ list_services: '' }), {
        list_services_response: {
          service: [
            { name: 'inference.GRPCInferenceService' },
            { name: 'grpc.health.v1.Health' },
            { name: 'grpc.reflection.v1.ServerReflection' },
            { name: 'grpc.reflection.v1alpha.ServerReflection' },
          ],
        },
      })
      const bySymbol = await ask({ host: 'h', file_containing_symbol: 'inference.InferParameter' })
      t.match(bySymbol, { valid_host: 'h', original_request: { host: 'h' } })
      const [file] = bySymbol.file_descriptor_response?.file_descriptor_proto ?? []
      t.ok(file?.equals(readReflection().files.get('inference.proto') ?? Buffer.of()))
      const byName = await ask({ file_by_filename: 'grpc_health_v1.proto' })
      t.equal(byName.file_descriptor_response?.file_descriptor_proto.length, 1)
      t.match(await ask({ all_extension_numbers_of_type: 'inference.InferParameter' }), {
        all_extension_numbers_response: {
          base_type_name: 'inference.InferParameter',
          extension_number: [],
        },
      })
      for (const [question, code] of [
        [{ file_containing_symbol: 'google.rpc.Status' }, 5],
        [{ file_by_filename: 'x.proto' }, 5],
        [{ all_extension_numbers_of_type: 'x' }, 5],
        [{ file_containing_extension: { containing_type: 'x', extension_number: 1 } }, 5],
        [{ host: 'x' }, 3],
      ] as const)
        t.equal((await ask(question)).error_response?.error_code, code, JSON.stringify(question))
      // More than the client's window and the server's bound of unread answers, in one go.
      for (let i = 0; i < 200; i++) stream.write({ file_by_filename: 'inference.proto' })
      stream.end()
      let answers = 0
      for await (const answer of stream) answers += Number('file_descriptor_response' in answer)
      t.equal(answers, 200)
    }
    while (served.admission.bytes > 0) await setImmediate()
    const tooLarge = reflect(served, 'v1')
    tooLarge.write({ host: 'x'.repeat(65_536) })
    t.match(await failed(tooLarge), { details: /want at most 65536/ })
    const waiting = reflect(served, 'v1')
    waiting.write({ list_services: '' })
    await once(waiting, 'data')
    const stopped = failed(waiting)
    t.equal(await served.server.drain({ timeoutMs: 10_000 }), true)
    t.equal((await stopped).code, status.UNAVAILABLE)
  },
)

await t.test(
  'all methods that reflection names are served, and without the flag it is not',
  async (t) => {
    const served = await openTestServer(t, {}, { hasReflection: true })
    const methods = [...readReflection().fileOf.keys()].filter((name) =>
      /\.(GRPCInferenceService|Health)\./.test(name),
    )
    t.ok(methods.length > 20)
    const ask = (name: string) =>
      new Promise<ServiceError | null>((resolve) => {
        const path = `/${name.replace(/\.([^.]+)$/, '/$1')}`
        served.client.objects.makeUnaryRequest(path, pass, pass, Buffer.of(), resolve)
      })
    const unknown = /does not implement the method/
    for (const name of methods) t.notMatch((await ask(name))?.details ?? '', unknown, name)
    const plain = reflect(await openTestServer(t, {}), 'v1')
    plain.write({ list_services: '' })
    t.match(await failed(plain), { code: status.UNIMPLEMENTED, details: unknown })
  },
)
