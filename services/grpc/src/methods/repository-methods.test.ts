import { once } from 'node:events'
import { connect } from 'node:http2'
import { status } from '@grpc/grpc-js'
import { ServeError } from '@tutti/errors'
import { fromGrpcStatus } from '@tutti/protocol'
import { createControlGuard, FLAGS_RULE, loadFailed } from '@tutti/serving'
import { RecordingControl } from '@tutti/serving/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { openTestServer, type TestServer } from '../testing/test-server.ts'

async function open(t: Test, o: Parameters<typeof openTestServer>[2] = {}) {
  const served = await openTestServer(t, {}, o)
  const control = new RecordingControl()
  served.backend.control = control
  return { served, control }
}

/** Calls by name with objects, as any client may write them. */
function call(
  served: TestServer,
  method: 'RepositoryModelLoad' | 'RepositoryModelUnload',
  request: object,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    served.client.objects[method](request, (error, answer) => {
      if (error === null) resolve(answer)
      else reject(fromGrpcStatus(error))
    })
  })
}

const BYTES = Buffer.from([0, 1, 255])

await t.test('a load reaches the control with its config and files', async (t) => {
  const { served, control } = await open(t)
  await call(served, 'RepositoryModelLoad', { model_name: 'm' })
  await call(served, 'RepositoryModelLoad', {
    model_name: 'm',
    parameters: { config: { string_param: '{}' }, 'file:1/f': { bytes_param: BYTES } },
  })
  t.same(control.loads, [
    ['m', { files: new Map() }],
    ['m', { config: '{}', files: new Map([['1/f', BYTES]]) }],
  ])
})

await t.test('an unload reaches the control, with its dependents if wanted', async (t) => {
  const { served, control } = await open(t)
  await call(served, 'RepositoryModelUnload', { model_name: 'm' })
  await call(served, 'RepositoryModelUnload', {
    model_name: 'm',
    parameters: { unload_dependents: { bool_param: true }, other: { int64_param: 1 } },
  })
  t.same(control.unloads, [
    ['m', false],
    ['m', true],
  ])
})

await t.test('what the control fails with is what the client gets', async (t) => {
  const { served, control } = await open(t)
  control.outcome = () => Promise.reject(loadFailed('m', 'it is broken'))
  await t.rejects(call(served, 'RepositoryModelLoad', { model_name: 'm' }), {
    code: 'INVALID_ARGUMENT',
    message: "load failed for model 'm': it is broken\n",
  })
})

await t.test("parameters of another kind are refused in Triton's words", async (t) => {
  const { served, control } = await open(t)
  const config = "invalid value type for load parameter 'config', expected string_param."
  const file = "invalid value type for load parameter 'file:1/f', expected bytes_param."
  const unload = "invalid value type for 'unload_dependents' parameter, expected bool_param."
  const cases: readonly (readonly ['Load' | 'Unload', object, string])[] = [
    ['Load', { config: { bytes_param: BYTES } }, config],
    ['Load', { config: {} }, config],
    ['Load', { 'file:1/f': { string_param: 'x' } }, file],
    ['Load', { 'file:1/f': { int64_param: 3 } }, file],
    ['Load', { missing: { string_param: 'x' } }, "unrecognized load parameter 'missing'."],
    ['Unload', { unload_dependents: { string_param: 'true' } }, unload],
    ['Unload', { unload_dependents: {} }, unload],
  ]
  for (const [method, parameters, message] of cases) {
    const request = { model_name: 'm', parameters }
    await t.rejects(call(served, `RepositoryModel${method}`, request), {
      code: 'INVALID_ARGUMENT',
      message,
    })
  }
  t.same(control.loads, [])
  t.same(control.unloads, [])
})

await t.test(
  'a load counts among the requests and bytes in flight until it is answered',
  async (t) => {
    const { served, control } = await open(t)
    const gate = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    control.outcome = () => {
      begun.resolve()
      return gate.promise
    }
    const files = { 'file:1/f': { bytes_param: Buffer.alloc(5 * 1024 * 1024) } }
    const loaded = call(served, 'RepositoryModelLoad', { model_name: 'm', parameters: files })
    await begun.promise
    t.equal(served.admission.requests, 1)
    t.ok(served.admission.bytes >= 5 * 1024 * 1024, 'more than calls without a place may send')
    gate.resolve()
    await loaded
  },
)

/** Begins a load and sends nothing of it. @returns its status. */
async function beginLoad(t: Test, port: number): Promise<unknown> {
  const session = connect(`http://127.0.0.1:${port}`)
  t.teardown(() => session.destroy())
  const stream = session.request({
    ':method': 'POST',
    ':path': '/inference.GRPCInferenceService/RepositoryModelLoad',
    'content-type': 'application/grpc',
  })
  const [headers] = await once(stream, 'response')
  return headers['grpc-status']
}

await t.test(
  'where it is not allowed, a load is refused before its message is there',
  async (t) => {
    const { served } = await open(t)
    served.backend.control = FLAGS_RULE
    t.equal(await beginLoad(t, served.server.port), String(status.UNAVAILABLE))
    delete served.backend.control
    t.equal(await beginLoad(t, served.server.port), String(status.UNAVAILABLE))
    const guarded = await open(t, {
      guardControl: createControlGuard({ isLoopbackOnly: false, readToken: () => 'x' }),
    })
    t.equal(await beginLoad(t, guarded.served.server.port), String(status.UNAUTHENTICATED))
  },
)

await t.test('a small message of very many fields is refused before it is decoded', async (t) => {
  const { served } = await open(t)
  const session = connect(`http://127.0.0.1:${served.server.port}`)
  t.teardown(() => session.destroy())
  const cases = [
    ['inference.GRPCInferenceService/ServerMetadata', '7800'],
    ['inference.GRPCInferenceService/ModelReady', '0a00'],
    ['inference.GRPCInferenceService/SystemSharedMemoryRegister', '1801'],
    ['inference.GRPCInferenceService/RepositoryModelLoad', '1a00'],
    ['inference.GRPCInferenceService/RepositoryModelUnload', '0a00'],
  ] as const
  for (const [path, field] of cases) {
    const message = Buffer.alloc(2 ** 20, Buffer.from(field, 'hex'))
    const stream = session.request({
      ':method': 'POST',
      ':path': `/${path}`,
      'content-type': 'application/grpc',
    })
    const head = Buffer.alloc(5)
    head.writeUInt32BE(message.byteLength, 1)
    stream.end(Buffer.concat([head, message]))
    const [headers] = await once(stream, 'response')
    t.equal(headers['grpc-status'], String(status.RESOURCE_EXHAUSTED), path)
  }
})

await t.test('more parameters than MESSAGE_BOUNDS are refused', async (t) => {
  const { served } = await open(t)
  const names = Array.from({ length: 4097 }, (_, i) => [`file:1/${i}`, { bytes_param: BYTES }])
  const request = { model_name: 'm', parameters: Object.fromEntries(names) }
  await t.rejects(call(served, 'RepositoryModelLoad', request), {
    message: /more than 4096 entries/,
  })
})

const value = fc.oneof(
  fc.constant({}),
  fc.record({ bool_param: fc.boolean() }),
  fc.record({ int64_param: fc.integer() }),
  fc.record({ string_param: fc.string() }),
  fc.record({ bytes_param: fc.uint8Array().map((bytes) => Buffer.from(bytes)) }),
)
const key = fc.oneof(
  fc.constantFrom('config', 'unload_dependents', 'file:', 'file:1/f', 'FILE:x', '__proto__'),
  fc.string(),
)

await t.test('any parameters are taken or refused with a reason', async (t) => {
  const { served, control } = await open(t)
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('RepositoryModelLoad', 'RepositoryModelUnload'),
      fc.string(),
      fc.dictionary(key, value, { noNullPrototype: true }),
      async (method, model_name, parameters) => {
        const before = control.loads.length + control.unloads.length
        try {
          await call(served, method, { model_name, parameters })
          seen.add('taken')
        } catch (thrown) {
          const error = ServeError.from(thrown)
          if (error.code !== 'INVALID_ARGUMENT') throw thrown
          seen.add(error.reason)
          if (control.loads.length + control.unloads.length !== before) throw thrown
        }
      },
    ),
    { numRuns: 300 },
  )
  t.same([...seen].toSorted(), ['INVALID_PARAMETER', 'taken'])
})
