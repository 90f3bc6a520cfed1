import { once } from 'node:events'
import { connect } from 'node:http2'
import { setImmediate } from 'node:timers/promises'
import { credentials, type MethodDefinition, type ServiceError, status } from '@grpc/grpc-js'
import { createManualClock } from '@tutti/chassis/testing'
import type { ModelStatistics } from '@tutti/model-config'
import { fromGrpcStatus, inferenceServices, type RawInferenceService } from '@tutti/protocol'
import { openHealthClient } from '@tutti/protocol/client'
import { RecordingControl } from '@tutti/serving/testing'
import t, { type Test } from 'tap'
import { MAX_WATCHES } from './methods/health-watch.ts'
import { openTestServer, type TestServer } from './testing/test-server.ts'

type Method = Exclude<keyof RawInferenceService, 'ModelInfer' | 'ModelStreamInfer'>

/** Calls a unary method by name: the answer as an object, or our error. */
function call(served: TestServer, method: Method, request: object = {}): Promise<unknown> {
  const definition: MethodDefinition<object, object> | undefined =
    inferenceServices().inference[method]
  return new Promise((resolve, reject) => {
    if (definition === undefined) throw new Error(`no method ${method}`)
    served.client.objects.makeUnaryRequest(
      definition.path,
      (value: object) => definition.requestSerialize(value),
      (bytes) => definition.responseDeserialize(bytes),
      request,
      (error: ServiceError | null, answer) => {
        if (error === null) resolve(answer)
        else reject(fromGrpcStatus(error))
      },
    )
  })
}

const duration = (count: bigint, ns: bigint) => ({ count, ns })
const statistics: ModelStatistics = {
  name: 'm',
  version: '1',
  lastInference: 1_700_000_000_000n,
  inferenceCount: 9_007_199_254_740_993n,
  executionCount: 2n,
  success: duration(1n, 10n),
  fail: duration(2n, 20n),
  queue: duration(3n, 30n),
  computeInput: duration(4n, 40n),
  computeInfer: duration(5n, 50n),
  computeOutput: duration(6n, 60n),
  cacheHit: duration(7n, 70n),
  cacheMiss: duration(8n, 80n),
  batchStats: [
    {
      batchSize: 4n,
      computeInput: duration(1n, 1n),
      computeInfer: duration(2n, 2n),
      computeOutput: duration(3n, 3n),
    },
  ],
}

await t.test('the server says what it is', async (t) => {
  const served = await openTestServer(t, { m: {} })
  t.strictSame(await call(served, 'ServerLive'), { live: true })
  t.strictSame(await call(served, 'ServerReady'), { ready: true })
  t.strictSame(await call(served, 'ServerMetadata'), {
    name: 'tutti',
    version: '1.2',
    extensions: ['classification', 'statistics'],
  })
  served.backend.ready = false
  t.strictSame(await call(served, 'ServerReady'), { ready: false })
})

await t.test('the server says what its models are', async (t) => {
  const served = await openTestServer(t, { m: {} })
  t.strictSame(await call(served, 'ModelReady', { name: 'm' }), { ready: true })
  t.strictSame(await call(served, 'ModelReady', { name: 'nope' }), { ready: false })
  t.strictSame(await call(served, 'ModelMetadata', { name: 'm' }), {
    name: 'm',
    versions: ['1'],
    platform: 'scripted',
    inputs: [{ name: 'x', datatype: 'FP32', shape: ['-1', '4'] }],
    outputs: [{ name: 'y', datatype: 'BYTES', shape: ['-1', '4'] }],
  })
  t.match(await call(served, 'ModelConfig', { name: 'm' }), {
    config: {
      name: 'm',
      backend: 'scripted',
      max_batch_size: 8,
      input: [{ data_type: 'TYPE_FP32', dims: ['-1'] }],
    },
  })
  for (const method of ['ModelMetadata', 'ModelConfig'] as const) {
    await t.rejects(call(served, method, { name: 'nope' }), {
      code: 'NOT_FOUND',
      reason: 'MODEL_NOT_FOUND',
      message: "Request for unknown model: 'nope' is not found",
    })
  }
})

await t.test('statistics keep all 64 bits', async (t) => {
  const served = await openTestServer(t, { m: {} })
  served.backend.statisticsOf = [statistics]
  t.match(await call(served, 'ModelStatistics'), {
    model_stats: [
      {
        name: 'm',
        version: '1',
        last_inference: '1700000000000',
        inference_count: '9007199254740993',
        execution_count: '2',
        inference_stats: {
          success: { count: '1', ns: '10' },
          fail: { count: '2', ns: '20' },
          queue: { count: '3', ns: '30' },
          compute_input: { count: '4', ns: '40' },
          compute_infer: { count: '5', ns: '50' },
          compute_output: { count: '6', ns: '60' },
          cache_hit: { count: '7', ns: '70' },
          cache_miss: { count: '8', ns: '80' },
        },
        batch_stats: [
          {
            batch_size: '4',
            compute_input: { count: '1', ns: '1' },
            compute_infer: { count: '2', ns: '2' },
            compute_output: { count: '3', ns: '3' },
          },
        ],
      },
    ],
  })
})

await t.test(
  'the repository is listed, and its models stay loaded without a control',
  async (t) => {
    const served = await openTestServer(t, { m: {} })
    const ready = { name: 'm', version: '1', state: 'READY', reason: '' } as const
    const failed = { name: 'n', version: '2', state: 'UNAVAILABLE', reason: 'Internal: x' } as const
    served.backend.index = [ready, failed]
    t.strictSame(await call(served, 'RepositoryIndex'), { models: [ready, failed] })
    t.strictSame(await call(served, 'RepositoryIndex', { ready: true }), { models: [ready] })
    served.backend.control = new RecordingControl()
    for (const method of [
      'RepositoryIndex',
      'RepositoryModelLoad',
      'RepositoryModelUnload',
    ] as const) {
      await t.rejects(call(served, method, { repository_name: 'r' }), {
        code: 'UNIMPLEMENTED',
        reason: 'UNSUPPORTED',
        message: "'repository_name' specification is not supported",
      })
    }
    delete served.backend.control
    for (const method of ['RepositoryModelLoad', 'RepositoryModelUnload'] as const) {
      await t.rejects(call(served, method, { model_name: 'm' }), {
        code: 'UNAVAILABLE',
        reason: 'MODEL_CONTROL_REFUSED',
        message: 'explicit model load / unload is not allowed if polling is enabled',
      })
    }
  },
)

await t.test('shared memory is off', async (t) => {
  const served = await openTestServer(t, {})
  for (const kind of ['System', 'Cuda'] as const) {
    t.strictSame(await call(served, `${kind}SharedMemoryStatus`), { regions: {} })
    await t.rejects(call(served, `${kind}SharedMemoryStatus`, { name: 'r' }), {
      code: 'NOT_FOUND',
      message: `Unable to find ${kind.toLowerCase()} shared memory region: 'r'`,
    })
    for (const action of ['Register', 'Unregister'] as const) {
      await t.rejects(call(served, `${kind}SharedMemory${action}`, { name: 'r' }), {
        code: 'UNIMPLEMENTED',
        message:
          "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
      })
    }
  }
})

await t.test('trace and log settings are not offered', async (t) => {
  const served = await openTestServer(t, {})
  for (const [method, what] of [
    ['TraceSetting', 'trace settings'],
    ['LogSettings', 'log settings'],
  ] as const) {
    await t.rejects(call(served, method), {
      code: 'UNIMPLEMENTED',
      reason: 'UNSUPPORTED',
      message: `${what} are not offered by this server`,
    })
  }
})

await t.test('while the process shuts down calls are refused', async (t) => {
  const served = await openTestServer(t, { m: {} })
  served.backend.live = false
  t.strictSame(await call(served, 'ServerReady'), { ready: false })
  await t.rejects(call(served, 'ServerLive'), { code: 'UNAVAILABLE', message: 'Server exiting' })
  for (const method of [
    'ServerMetadata',
    'ModelReady',
    'ModelMetadata',
    'ModelConfig',
    'ModelStatistics',
    'RepositoryIndex',
    'RepositoryModelLoad',
  ] as const) {
    await t.rejects(
      call(served, method),
      { code: 'UNAVAILABLE', reason: 'SERVER_NOT_READY', message: 'Server not ready' },
      method,
    )
  }
})

await t.test('health follows readiness, for any service name', async (t) => {
  const served = await openTestServer(t, {})
  const client = openHealth(t, served)
  const check = () =>
    new Promise((resolve, reject) => {
      client.Check({ service: 'any' }, (error, answer) => (error ? reject(error) : resolve(answer)))
    })
  t.strictSame(await check(), { status: 'SERVING' })
  served.backend.ready = false
  t.strictSame(await check(), { status: 'NOT_SERVING' })
  served.backend.ready = true
  served.backend.live = false
  t.strictSame(await check(), { status: 'NOT_SERVING' })
})

await t.test('health cannot be watched unless the server offers it', async (t) => {
  const watching = watch(t, await openTestServer(t, {}))
  const error = await watching.ended
  t.match(error, { code: status.UNIMPLEMENTED, details: /--grpc-health-watch/ })
  t.strictSame(watching.states, [])
})

await t.test('who watches health gets the state at once, and each change', async (t) => {
  const clock = createManualClock()
  const served = await openTestServer(t, {}, { clock, hasHealthWatch: true })
  const idle = clock.pending
  const one = watch(t, served)
  await one.next()
  served.backend.ready = false
  clock.advance(500)
  await one.next()
  clock.advance(5000)
  served.backend.ready = true
  clock.advance(500)
  await one.next()
  const two = watch(t, served)
  await two.next()
  t.equal(clock.pending, idle + 1, 'one timer for both')
  t.equal(served.admission.requests, 0)
  for (const each of [one, two]) {
    each.call.cancel()
    await each.ended
  }
  while (clock.pending > idle) await setImmediate()
  served.backend.live = false
  t.strictSame([one.states, two.states], [['SERVING', 'NOT_SERVING', 'SERVING'], ['SERVING']])
})

await t.test('a server that stops says so to those who watch, and waits for none', async (t) => {
  const served = await openTestServer(t, {}, { hasHealthWatch: true })
  const one = watch(t, served)
  await one.next()
  t.equal(await served.server.drain({ timeoutMs: 10_000 }), true)
  t.equal((await one.ended).code, status.UNAVAILABLE)
  t.strictSame(one.states, ['SERVING', 'NOT_SERVING'])
})

await t.test('who watches health as one too many ends the oldest', async (t) => {
  const o = { hasHealthWatch: true, maxConcurrentStreamsPerConnection: 2 * MAX_WATCHES }
  const served = await openTestServer(t, {}, o)
  const client = openHealth(t, served)
  const first = watch(t, served, client)
  await first.next()
  const others = Array.from({ length: MAX_WATCHES }, () => watch(t, served, client))
  t.match(await first.ended, { code: status.RESOURCE_EXHAUSTED, details: /watch its health/ })
  const last = others.at(-1)
  await last?.next()
  t.strictSame(last?.states, ['SERVING'])
})

await t.test('a client that takes no states gets the newest one later', async (t) => {
  const clock = createManualClock()
  const served = await openTestServer(t, {}, { clock, hasHealthWatch: true })
  const session = connect(`http://${served.address}`, { settings: { initialWindowSize: 0 } })
  t.teardown(() => session.close())
  await once(session, 'localSettings')
  const stream = session.request({
    ':method': 'POST',
    ':path': '/grpc.health.v1.Health/Watch',
    'content-type': 'application/grpc',
  })
  stream.end(Buffer.alloc(5))
  await once(stream, 'response')
  for (let i = 0; i < 99; i++) {
    served.backend.ready = i % 2 === 1
    clock.advance(500)
  }
  session.settings({ initialWindowSize: 65_535 })
  const pieces: Buffer[] = []
  stream.on('data', (piece: Buffer) => pieces.push(piece))
  while (Buffer.concat(pieces).byteLength < 14) {
    clock.advance(500)
    await setImmediate()
  }
  t.equal(Buffer.concat(pieces).toString('hex'), '0000000002080100000000020802')
  stream.close()
})

function watch(t: Test, served: TestServer, client = openHealth(t, served)) {
  const call = client.Watch({})
  const states: unknown[] = []
  let read = 0
  call.on('data', (answer: { readonly status: unknown }) => states.push(answer.status))
  const ended = new Promise<ServiceError>((resolve) => call.on('error', resolve))
  const next = async (): Promise<void> => {
    read += 1
    while (states.length < read) await once(call, 'data')
  }
  return { call, states, ended, next }
}

function openHealth(t: Test, served: TestServer) {
  const client = openHealthClient(served.address, credentials.createInsecure())
  t.teardown(() => client.close())
  return client
}
