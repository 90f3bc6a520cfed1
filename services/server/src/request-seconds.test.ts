import { createLogger, parseFlags, systemClock } from '@tutti/chassis'
import { until } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { InferenceClient } from '@tutti/protocol/client'
import {
  echo,
  failsWith,
  type ModelScript,
  response,
  ScriptedBackend,
} from '@tutti/serving/testing'
import { ServerMetrics } from '@tutti/telemetry'
import t, { type Test } from 'tap'
import { SERVER_FLAGS } from './server-flags.ts'
import { openServers } from './servers.ts'

/** A request of a datatype that there is none of. */
const WRONG = '{"inputs":[{"name":"x","shape":[1],"datatype":"NONE","data":[1]}]}'
const TRACE = '0af7651916cd43dd8448eb211c80319c'

const breaks: ModelScript = async function* (request) {
  yield response(request, [], { final: false })
  throw new ServeError('ENGINE_FAILED', 'it broke')
}

/** Servers over models that answer, fail, or answer when a test lets them. */
async function start(t: Test, ...flags: string[]) {
  const gate = Promise.withResolvers<void>()
  const waits: ModelScript = async function* (request, { signal }) {
    const gone = new Promise<never>((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason))
    })
    await Promise.race([gate.promise, gone])
    yield response(request, [])
  }
  const several: ModelScript = async function* (request) {
    yield response(request, [], { final: false })
    await gate.promise
    yield response(request, [])
  }
  const backend = new ScriptedBackend({
    m: { script: echo() },
    bad: { script: failsWith(new ServeError('ENGINE_FAILED', 'it broke')) },
    waits: { script: waits },
    several: { script: several, isDecoupled: true },
    breaks: { script: breaks, isDecoupled: true },
  })
  const ports = ['grpc', 'http', 'metrics'].flatMap((name) => [
    `--${name}-port=0`,
    `--${name}-address=127.0.0.1`,
  ])
  const metrics = new ServerMetrics()
  const servers = await openServers({
    flags: parseFlags(SERVER_FLAGS, [...ports, ...flags]).values,
    backend,
    metrics,
    clock: systemClock,
    log: createLogger({ level: 'error', name: 'test', destination: { write: () => {} } }),
  })
  const client = new InferenceClient({ address: `127.0.0.1:${servers.ports.grpcPort}` })
  t.teardown(async () => {
    client.close()
    await servers.close()
  })
  /** @returns cancels it. */
  const overGrpc = (model: string) => {
    const ended = Promise.withResolvers<void>()
    const call = client.objects.ModelInfer({ model_name: model }, () => ended.resolve())
    return { ended: ended.promise, cancel: () => call.cancel() }
  }
  const post = (
    path: string,
    o: { body?: string; headers?: Record<string, string>; signal?: AbortSignal } = {},
  ) =>
    fetch(`http://127.0.0.1:${servers.ports.httpPort}/v2/models/${path}`, {
      method: 'POST',
      body: '{"inputs":[]}',
      ...o,
    })
  /** The counts by model, version, protocol and code. */
  const counts = async () => {
    const text = await metrics.render()
    const lines = text.matchAll(
      /^tutti_request_seconds_count\{model="(.*)",version="(.*)",protocol="(.*)",code="(.*)"\} (\d+)$/gm,
    )
    return [...lines].map(([, ...values]) => values.join(' ')).toSorted()
  }
  const counted = async (...wanted: string[]) => {
    await until('they count', async () => (await counts()).join() === wanted.join())
    t.same(await counts(), wanted)
  }
  return { backend, client, gate, metrics, overGrpc, post, counts, counted }
}

await t.test('requests count under their code, for both protocols', async (t) => {
  const { overGrpc, post, counted } = await start(t)
  for (const model of ['m', 'm', 'bad', 'several', 'unknown', 'guess']) await overGrpc(model).ended
  for (const model of ['m', 'bad', 'unknown', 'guess']) await (await post(`${model}/infer`)).text()
  await (await post('m/infer', { body: WRONG })).text()
  // It has no outputs, which is not one response.
  await (await post('m/generate', { body: '{}' })).text()
  await (await post('bad/generate', { body: '{}' })).text()
  await counted(
    '  grpc NOT_FOUND 2',
    '  http NOT_FOUND 2',
    'bad 1 grpc INTERNAL 1',
    'bad 1 http INTERNAL 2',
    'm 1 grpc OK 2',
    'm 1 http INVALID_ARGUMENT 1',
    'm 1 http OK 1',
    'm 1 http UNIMPLEMENTED 1',
    'several 1 grpc UNIMPLEMENTED 1',
  )
})

await t.test('calls that are no inference do not count', async (t) => {
  const { client, counts, post } = await start(t)
  await new Promise((resolve) => client.objects.ServerLive({}, resolve))
  await (await post('m/trace/setting', { body: '{}' })).text()
  t.same(await counts(), [])
})

await t.test('a request that its client cancels is CANCELLED', async (t) => {
  const { backend, overGrpc, post, counted } = await start(t)
  const call = overGrpc('waits')
  const controller = new AbortController()
  const gone = post('waits/infer', { signal: controller.signal }).catch(() => {})
  await until('both are at the model', () => backend.requests.length === 2)
  call.cancel()
  controller.abort()
  await Promise.all([call.ended, gone])
  await counted('waits 1 grpc CANCELLED 1', 'waits 1 http CANCELLED 1')
})

await t.test('a request whose time is over is DEADLINE_EXCEEDED', async (t) => {
  const { post, counted } = await start(t)
  await (await post('waits/infer', { headers: { 'tutti-timeout-ms': '20' } })).text()
  await counted('waits 1 http DEADLINE_EXCEEDED 1')
})

await t.test('a request without a place is refused before its model is known', async (t) => {
  const { backend, gate, overGrpc, counted } = await start(t, '--max-inflight-requests=1')
  const first = overGrpc('waits')
  await until('it is at the model', () => backend.requests.length === 1)
  await overGrpc('m').ended
  gate.resolve()
  await first.ended
  await counted('  grpc RESOURCE_EXHAUSTED 1', 'waits 1 grpc OK 1')
})

await t.test('each request of a stream counts, at its last response', async (t) => {
  const { client, gate, counted, counts } = await start(t)
  const stream = client.objects.ModelStreamInfer()
  let responses = 0
  stream.on('data', () => (responses += 1))
  const ended = new Promise((resolve) => stream.once('end', resolve))
  for (const model of ['m', 'several', 'breaks', 'unknown']) stream.write({ model_name: model })
  await until('all but one are answered', () => responses === 5)
  await counted('  grpc NOT_FOUND 1', 'breaks 1 grpc INTERNAL 1', 'm 1 grpc OK 1')
  gate.resolve()
  await counted(
    '  grpc NOT_FOUND 1',
    'breaks 1 grpc INTERNAL 1',
    'm 1 grpc OK 1',
    'several 1 grpc OK 1',
  )
  stream.end()
  await ended
  t.equal((await counts()).length, 4, 'the stream itself is none')
})

await t.test('a generated stream counts once, at its last event', async (t) => {
  const { backend, gate, post, counted, counts } = await start(t)
  const answer = await post('several/generate_stream', { body: '{}' })
  t.equal(answer.status, 200)
  t.same(await counts(), [])
  gate.resolve()
  await answer.text()
  await (await post('breaks/generate_stream', { body: '{}' })).text()
  await counted('breaks 1 http INTERNAL 1', 'several 1 http OK 1')
  const controller = new AbortController()
  backend.requests.length = 0
  const left = await post('waits/generate_stream', { body: '{}', signal: controller.signal }).catch(
    () => undefined,
  )
  t.equal(left?.status, 200)
  await left?.text()
  await counted('breaks 1 http INTERNAL 1', 'several 1 http OK 1', 'waits 1 http OK 1')
})

await t.test('buckets name sampled requests in OpenMetrics alone', async (t) => {
  const { post, metrics } = await start(t)
  const headers = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` }
  await (await post('m/infer', { headers })).text()
  const exemplar = `# {trace_id="${TRACE}"}`
  await until('it counts', async () => {
    const open = await metrics.render({ hasExemplars: true })
    return open.includes(`code="OK"} 1 ${exemplar}`)
  })
  t.notOk((await metrics.render()).includes(exemplar))
})
