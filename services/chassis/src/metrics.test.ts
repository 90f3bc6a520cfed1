import t from 'tap'
import { createMetrics, type MetricReading } from './metrics.ts'

function seriesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

await t.test('a metric without labels starts at 0', async (t) => {
  const metrics = createMetrics()
  metrics.counter({ name: 'tutti_step_drops_total', help: 'dropped' })
  metrics.gauge({ name: 'tutti_step_open', help: 'open' })
  t.same(seriesOf(await metrics.render()), ['tutti_step_drops_total 0', 'tutti_step_open 0'])
  t.match(metrics.contentType, /^text\/plain; version=0.0.4/)
})

await t.test('labelled series exist from init on', async (t) => {
  const metrics = createMetrics()
  const labels = ['model', 'version'] as const
  const counter = metrics.counter({ name: 'nv_inference_count', help: 'inferences', labels })
  counter.init({ model: 'a', version: '1' })
  counter.add({ model: 'b', version: '1' })
  counter.add({ model: 'b', version: '1' }, 4)
  t.match(await metrics.render(), '# TYPE nv_inference_count counter')
  t.same(seriesOf(await metrics.render()), [
    'nv_inference_count{model="a",version="1"} 0',
    'nv_inference_count{model="b",version="1"} 5',
  ])
})

await t.test('a gauge is set and moved', async (t) => {
  const metrics = createMetrics()
  const gauge = metrics.gauge({ name: 'queue', help: 'queued', labels: ['model'] })
  gauge.set({ model: 'a' }, 3)
  gauge.add({ model: 'a' }, -1)
  t.same(seriesOf(await metrics.render()), ['queue{model="a"} 2'])
})

await t.test('a histogram counts into its buckets', async (t) => {
  const metrics = createMetrics()
  const histogram = metrics.histogram({ name: 'ms', help: 'm', labels: ['step'], buckets: [1, 10] })
  histogram.init({ step: 'a' })
  histogram.observe({ step: 'a' }, 5)
  t.same(seriesOf(await metrics.render()), [
    'ms_bucket{le="1",step="a"} 0',
    'ms_bucket{le="10",step="a"} 1',
    'ms_bucket{le="+Inf",step="a"} 1',
    'ms_sum{step="a"} 5',
    'ms_count{step="a"} 1',
  ])
})

await t.test('a metric that is read has exactly the series of its owner', async (t) => {
  const metrics = createMetrics()
  let readings: MetricReading<'model'>[] = [{ labels: { model: 'a' }, value: 7 }]
  const labels = ['model'] as const
  metrics.readCounter({ name: 'count', help: 'c', labels, read: () => readings })
  metrics.readGauge({ name: 'level', help: 'l', labels, read: () => readings })
  t.same(seriesOf(await metrics.render()), ['count{model="a"} 7', 'level{model="a"} 7'])
  t.same(seriesOf(await metrics.render()), ['count{model="a"} 7', 'level{model="a"} 7'])
  readings = [{ labels: { model: 'b' }, value: 1 }]
  t.same(seriesOf(await metrics.render()), ['count{model="b"} 1', 'level{model="b"} 1'])
})

await t.test('a metric may be read from afar', async (t) => {
  const metrics = createMetrics()
  metrics.readGauge({
    name: 'far',
    help: 'f',
    labels: ['server'],
    read: () => Promise.resolve([{ labels: { server: 's' }, value: 3 }]),
  })
  const [one, other] = await Promise.all([metrics.render(), metrics.render()])
  t.same(seriesOf(one), ['far{server="s"} 3'])
  t.same(seriesOf(other), ['far{server="s"} 3'])
})

await t.test('two sets of metrics know nothing of each other', async (t) => {
  createMetrics().counter({ name: 'x', help: 'x' })
  t.equal((await createMetrics().render()).trim(), '')
})
