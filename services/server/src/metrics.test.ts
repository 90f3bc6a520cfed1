import { once } from 'node:events'
import { connect } from 'node:net'
import { createHealth, createMetrics } from '@tutti/chassis'
import type { Json } from '@tutti/model-config'
import { formatMetrics, ServerMetrics, StatisticsRecorder } from '@tutti/telemetry'
import { NO_TIMES } from '@tutti/tensor'
import t from 'tap'
import { startMetricsServer } from './metrics-server.ts'

const TIMES = { computeInputNs: 1000, computeInferNs: 2_500_000, computeOutputNs: 999 }

/** A host whose CPUs are busy for a quarter of the time between two scrapes. */
function quarterBusyHost() {
  let scrapes = 0
  return () => {
    scrapes += 1
    const memory = { memoryTotalBytes: 1000, memoryFreeBytes: 400 }
    return { busyMs: scrapes * 25, totalMs: scrapes * 100, ...memory }
  }
}

function lines(text: string, name: string): readonly string[] {
  return text.split('\n').filter((line) => line.startsWith(name))
}

await t.test(
  'a model has all its series at 0 from the start, and none after it was removed',
  async (t) => {
    const metrics = new ServerMetrics({ host: quarterBusyHost() })
    const recorder = new StatisticsRecorder({ name: 'm', version: '1' })
    metrics.addModel(recorder, { name: 'm', version: '1', loadSeconds: 0.5 })
    const text = await metrics.render()
    for (const name of [
      'nv_inference_request_success',
      'nv_inference_count',
      'nv_inference_exec_count',
      'nv_inference_request_duration_us',
      'nv_inference_queue_duration_us',
      'nv_inference_compute_input_duration_us',
      'nv_inference_compute_infer_duration_us',
      'nv_inference_compute_output_duration_us',
      'nv_inference_pending_request_count',
    ]) {
      t.same(lines(text, `${name}{`), [`${name}{model="m",version="1"} 0`])
      t.equal(lines(text, `# TYPE ${name} `).length, 1)
      t.equal(lines(text, `# HELP ${name} `).length, 1)
    }
    t.same(
      lines(text, 'nv_inference_request_failure{'),
      ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'].map(
        (reason) => `nv_inference_request_failure{model="m",version="1",reason="${reason}"} 0`,
      ),
    )
    t.same(lines(text, 'nv_model_load_duration_secs{'), [
      'nv_model_load_duration_secs{model="m",version="1"} 0.5',
    ])
    metrics.removeModel(recorder)
    t.notMatch(await metrics.render(), 'model="m"')
  },
)

await t.test('what a model did is read at the scrape, in microseconds', async (t) => {
  const metrics = new ServerMetrics()
  const recorder = new StatisticsRecorder({ name: 'm', version: '1' })
  metrics.addModel(recorder, { name: 'm', version: '1' })
  const times = { ...NO_TIMES, ...TIMES, queueNs: 1500 }
  recorder.ended({ elapsedNs: 5_000_999, batchSize: 4, times })
  recorder.recordExecution({ ...TIMES, batchSize: 4 })
  recorder.recordFailure({ requestNs: 1, reason: 'BACKEND' })
  recorder.pending += 1
  const text = await metrics.render()
  const want = {
    nv_inference_request_success: 1,
    nv_inference_count: 4,
    nv_inference_exec_count: 1,
    nv_inference_request_duration_us: 5000,
    nv_inference_queue_duration_us: 1,
    nv_inference_compute_input_duration_us: 1,
    nv_inference_compute_infer_duration_us: 2500,
    nv_inference_compute_output_duration_us: 0,
    nv_inference_pending_request_count: 1,
  }
  for (const [name, value] of Object.entries(want)) {
    t.same(lines(text, `${name}{`), [`${name}{model="m",version="1"} ${value}`])
  }
  t.match(text, 'nv_inference_request_failure{model="m",version="1",reason="BACKEND"} 1\n')
})

await t.test('metric tags become labels, and every label value is escaped', async (t) => {
  const metrics = new ServerMetrics()
  const recorder = new StatisticsRecorder({ name: 'm', version: '1' })
  metrics.addModel(recorder, {
    name: 'a"b\\c\nd',
    version: '1',
    tags: { 'cost-center': 'x', cost_center: 'y', team: 'vision' },
  })
  t.match(
    await metrics.render(),
    'nv_inference_count{model="a\\"b\\\\c\\nd",version="1",_cost_center="x",_team="vision"} 0\n',
  )
})

await t.test('the host is read too', async (t) => {
  const metrics = new ServerMetrics({ host: quarterBusyHost() })
  const text = await metrics.render()
  t.same(lines(text, 'nv_cpu_'), [
    'nv_cpu_utilization 0.25',
    'nv_cpu_memory_total_bytes 1000',
    'nv_cpu_memory_used_bytes 600',
  ])
  t.match(await new ServerMetrics().render(), /nv_cpu_memory_total_bytes \d{6,}/)
})

await t.test('steps have histograms for queue, transfer and compute', async (t) => {
  const own = createMetrics()
  own.counter({ name: 'tutti_other_total', help: 'of another package' })
  const metrics = new ServerMetrics({ metrics: own })
  const step = { ensemble: 'e', step: 'detect', model: 'm' }
  metrics.addStep(step)
  t.match(
    await metrics.render(),
    'tutti_step_queue_seconds_count{ensemble="e",step="detect",model="m"} 0\n',
  )
  const compute = { computeInputNs: 1e8, computeInferNs: 1e8, computeOutputNs: 1e8 }
  metrics.observeStep(step, { queueNs: 2e6, ...compute, transferNs: 0 }, 3.022e8)
  const text = await metrics.render()
  t.match(text, 'tutti_step_queue_seconds_sum{ensemble="e",step="detect",model="m"} 0.002\n')
  t.match(
    text,
    'tutti_step_transfer_seconds_bucket{le="0.00025",ensemble="e",step="detect",model="m"} 1\n',
  )
  t.match(text, 'tutti_step_compute_seconds_count{ensemble="e",step="detect",model="m"} 1\n')
  t.match(text, 'tutti_other_total 0\n', 'metrics of other packages stand beside them')
  metrics.countStep(step, 'hedged')
  metrics.countStep(step, 'hedged')
  metrics.countStep(step, 'hedgeWon')
  metrics.addStep(step)
  const labels = '{ensemble="e",step="detect",model="m"}'
  const hedges = async () => lines(await metrics.render(), 'tutti_step_hedges')
  t.same(await hedges(), [
    `tutti_step_hedges_total${labels} 2`,
    `tutti_step_hedges_won_total${labels} 1`,
  ])
  metrics.removeStep(step)
  metrics.countStep(step, 'hedged')
  t.notMatch(await metrics.render(), 'step="detect"')
  metrics.addStep(step)
  t.same(await hedges(), [
    `tutti_step_hedges_total${labels} 0`,
    `tutti_step_hedges_won_total${labels} 0`,
  ])
})

await t.test('versions of one ensemble share one series', async (t) => {
  const metrics = new ServerMetrics()
  for (const version of ['1', '2']) {
    const recorder = new StatisticsRecorder({ name: 'e', version })
    recorder.recordFailure({ requestNs: 1, reason: 'OTHER' })
    metrics.addModel(recorder, { name: 'e', version: '1' })
  }
  const lines = (await metrics.render()).split('\n').filter((line) => line.includes('model="e"'))
  const names = lines.map((line) => line.slice(0, line.lastIndexOf(' ')))
  t.same(names, [...new Set(names)])
  t.ok(lines.includes('nv_inference_request_failure{model="e",version="1",reason="OTHER"} 2'))
})

await t.test('values that are no ordinary numbers print as Prometheus reads them', async (t) => {
  const series = [Number.NaN, Infinity, -Infinity, 1.5].map((value) => ({ labels: [], value }))
  t.equal(
    formatMetrics([{ name: 'g', help: 'a\\b\nc', type: 'gauge', series }]),
    '# HELP g a\\\\b\\nc\n# TYPE g gauge\ng NaN\ng +Inf\ng -Inf\ng 1.5\n',
  )
})

await t.test('the endpoint answers GET on any path, and nothing else', async (t) => {
  const server = await startMetricsServer({
    address: '127.0.0.1',
    port: 0,
    metrics: new ServerMetrics(),
  })
  t.teardown(() => server.close())
  for (const path of ['/metrics', '/', '/metrics/?x=1']) {
    const got = await fetch(`http://127.0.0.1:${server.port}${path}`)
    t.equal(got.status, 200)
    t.match(got.headers.get('content-type'), 'text/plain; version=0.0.4')
    t.match(await got.text(), 'nv_cpu_utilization')
  }
  const wrong = await fetch(`http://127.0.0.1:${server.port}/metrics`, { method: 'POST' })
  t.equal(wrong.status, 405)
  t.equal(wrong.headers.get('allow'), 'GET')
  await t.rejects(
    startMetricsServer({ address: '127.0.0.1', port: server.port, metrics: new ServerMetrics() }),
    { reason: 'SETTING_INVALID', message: /^cannot listen on/ },
  )
})

await t.test('probes tell of the process, beside the metrics', async (t) => {
  const health = createHealth()
  const server = await startMetricsServer({
    address: '127.0.0.1',
    port: 0,
    metrics: new ServerMetrics(),
    health,
  })
  t.teardown(() => server.close())
  const probe = async (path: string): Promise<readonly [number, string]> => {
    const got = await fetch(`http://127.0.0.1:${server.port}${path}`)
    return [got.status, await got.text()]
  }
  t.same(await probe('/livez'), [200, 'ok\n'])
  t.same(await probe('/readyz?verbose'), [503, 'the server is starting\n'])
  health.hold('broker', 'the broker is not connected')
  t.same(await probe('/readyz'), [503, 'the server is starting\nthe broker is not connected\n'])
  health.release('starting')
  health.release('broker')
  t.same(await probe('/readyz'), [200, 'ok\n'])
  health.die('the server is closing')
  t.same(await probe('/livez'), [503, 'the server is closing\n'])
  t.match(await probe('/metrics'), [200, 'nv_cpu_utilization'], 'until the very end')
})

await t.test('silent connections do not keep probes and scrapes out', async (t) => {
  const health = createHealth()
  health.release('starting')
  const server = await startMetricsServer({
    address: '127.0.0.1',
    port: 0,
    metrics: new ServerMetrics(),
    health,
  })
  t.teardown(() => server.close())
  for (let i = 0; i < 200; i++) {
    const socket = connect(server.port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    await once(socket, 'connect')
  }
  for (const path of ['/livez', '/readyz', '/metrics']) {
    t.equal((await fetch(`http://127.0.0.1:${server.port}${path}`)).status, 200, path)
  }
})

await t.test('a process answers JSON on paths of its own', async (t) => {
  let load = 0
  const server = await startMetricsServer({
    address: '127.0.0.1',
    port: 0,
    metrics: new ServerMetrics(),
    answers: new Map<string, () => Json | Promise<Json>>([
      ['/tutti/v1/load', () => ({ load: ++load })],
      ['/tutti/v1/broken', () => Promise.reject(new Error('no answer'))],
    ]),
  })
  t.teardown(() => server.close())
  const get = (path: string) => fetch(`http://127.0.0.1:${server.port}${path}`)
  const first = await get('/tutti/v1/load?x=1')
  t.equal(first.headers.get('content-type'), 'application/json')
  t.same(await first.json(), { load: 1 })
  t.same(await (await get('/tutti/v1/load')).json(), { load: 2 }, 'asked each time')
  const broken = await get('/tutti/v1/broken')
  t.same([broken.status, await broken.json()], [500, { error: 'no answer' }])
  t.match(await (await get('/tutti/v1')).text(), 'nv_cpu_utilization')
})

await t.test('who asks for OpenMetrics gets it, with exemplars', async (t) => {
  const metrics = new ServerMetrics()
  const step = { ensemble: 'e', step: 'detect', model: 'm' }
  metrics.observeStep(step, { ...NO_TIMES, queueNs: 2e6 }, 2e6, 'ab'.repeat(16))
  const server = await startMetricsServer({ address: '127.0.0.1', port: 0, metrics })
  t.teardown(() => server.close())
  const get = async (accept: string) => {
    const got = await fetch(`http://127.0.0.1:${server.port}/metrics`, { headers: { accept } })
    return { type: got.headers.get('content-type'), text: await got.text() }
  }
  const open = await get('application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.4')
  t.equal(open.type, 'application/openmetrics-text; version=1.0.0; charset=utf-8')
  t.match(open.text, /\nnv_cpu_memory_total_bytes \d+\n[^]*\n# EOF\n$/)
  t.match(open.text, /_bucket\{le="0.0025",[^}]*\} 1 # \{trace_id="(?:ab){16}"\} 0\.002 \d+/)
  const plain = await get('text/plain')
  t.equal(plain.type, metrics.contentType)
  t.notMatch(plain.text, /trace_id|EOF/)
})

await t.test('a scrape that fails is a 500 and the endpoint lives on', async (t) => {
  const broken = {
    contentType: 'text/plain',
    render: () => Promise.reject(new Error('no numbers')),
  }
  const server = await startMetricsServer({ address: '127.0.0.1', port: 0, metrics: broken })
  t.teardown(() => server.close())
  for (const attempt of [1, 2]) {
    const got = await fetch(`http://127.0.0.1:${server.port}/metrics`)
    t.equal(got.status, 500, `attempt ${attempt}`)
    t.same(await got.json(), { error: 'no numbers' })
  }
})

await t.test('families that others count are printed with the own ones', async (t) => {
  const metrics = new ServerMetrics({ host: quarterBusyHost() })
  let value = 1
  metrics.addFamilies(() => [
    { name: 'mine', help: 'Mine', type: 'gauge', series: [{ labels: [['a', 'b']], value }] },
  ])
  t.same(lines(await metrics.render(), 'mine'), ['mine{a="b"} 1'])
  value = 2
  t.same(lines(await metrics.render(), 'mine'), ['mine{a="b"} 2'])
})

await t.test('a model of a namespace has a label for it, as in Triton', async (t) => {
  const metrics = new ServerMetrics()
  for (const name of ['/models/a::m', '/models/b::m', 'c::m']) {
    const recorder = new StatisticsRecorder({ name, version: '1' })
    metrics.addModel(recorder, { name, version: '1', tags: { k: 'v' } })
  }
  t.same(lines(await metrics.render(), 'nv_inference_count{'), [
    'nv_inference_count{model="m",namespace="/models/a",version="1",_k="v"} 0',
    'nv_inference_count{model="m",namespace="/models/b",version="1",_k="v"} 0',
    'nv_inference_count{model="c::m",version="1",_k="v"} 0',
  ])
})
