import { parseFlags } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { EMPTY_CONTEXT, NO_TIMES } from '@tutti/tensor'
import t from 'tap'
import { StatisticsRecorder } from '../statistics/statistics.ts'
import { LatencySummaries } from './latency-summaries.ts'
import { ServerMetrics } from './metrics.ts'
import { METRICS_FLAGS, readMetricsFlags } from './metrics-flags.ts'

const END = { times: NO_TIMES, batchSize: 1 }
const MODEL = { name: 'm', version: 1, isEnsemble: false }
const REQUEST = { context: EMPTY_CONTEXT, inputs: [], requestedOutputs: [] }

function read(...configs: string[]) {
  const words = configs.map((text) => `--metrics-config=${text}`)
  return readMetricsFlags(parseFlags(METRICS_FLAGS, words).values)
}

function host() {
  return { busyMs: 0, totalMs: 0, memoryTotalBytes: 0, memoryFreeBytes: 0 }
}

await t.test('summaries appear at 0, count requests, and vanish with their model', async (t) => {
  const latencies = read(
    'counter_latencies=false',
    'summary_latencies=true',
    'summary_quantiles=0.5:0.05, 0.9:0.01',
  )
  const metrics = new ServerMetrics({ host, latencies })
  const first = new StatisticsRecorder({ name: 'm', version: '1' })
  const second = new StatisticsRecorder({ name: 'm', version: '2' })
  const versions = [first, second]
  for (const recorder of versions) metrics.addModel(recorder, { name: 'm', version: '1' })
  const empty = await metrics.render()
  t.match(empty, '# TYPE nv_inference_request_summary_us summary')
  t.match(empty, 'nv_inference_request_summary_us_count{model="m",version="1"} 0')
  t.match(empty, 'nv_inference_request_summary_us{model="m",version="1",quantile="0.5"} NaN')
  t.notMatch(empty, '_duration_us')
  t.match(empty, 'nv_pinned_memory_pool_total_bytes 268435456')
  for (const [i, recorder] of versions.entries()) {
    const watch = metrics.observerOf(recorder).began(MODEL, REQUEST, {})
    watch?.ended?.({ ...END, elapsedNs: (i + 1) * 1e6, times: { ...NO_TIMES, queueNs: 5000 } })
  }
  const counted = await metrics.render()
  t.match(counted, 'nv_inference_request_summary_us_count{model="m",version="1"} 2')
  t.match(counted, 'nv_inference_request_summary_us_sum{model="m",version="1"} 3000')
  t.match(counted, 'nv_inference_request_summary_us{model="m",version="1",quantile="0.9"} 2000')
  t.match(counted, 'nv_inference_queue_summary_us{model="m",version="1",quantile="0.5"} 5\n')
  metrics.removeModel(first)
  t.match(await metrics.render(), 'summary_us_count{model="m"')
  metrics.removeModel(second)
  t.notMatch(await metrics.render(), 'model="m"')
})

await t.test('quantiles are those of the last minute, of a sample of bounded size', (t) => {
  const clock = createManualClock()
  const summaries = new LatencySummaries({ quantiles: [0, 0.5, 1], clock, random: () => 0.5 })
  const watch = summaries.add([['model', 'm']]).began(MODEL, REQUEST, {}) ?? {}
  const valuesOf = () => summaries.families()[0]?.series.map(({ value }) => value)
  for (let i = 1; i <= 100; i++) watch.ended?.({ ...END, elapsedNs: i * 1000 })
  t.same(valuesOf(), [100, 5050, 1, 51, 100])
  clock.advance(30_000)
  watch.ended?.({ ...END, elapsedNs: 7_000_000 })
  t.same(valuesOf(), [101, 12_050, 1, 51, 7000])
  clock.advance(40_000)
  t.same(valuesOf(), [101, 12_050, 7000, 7000, 7000])
  clock.advance(40_000)
  t.same(valuesOf()?.slice(2), [Number.NaN, Number.NaN, Number.NaN])
  for (let i = 0; i < 5000; i++) watch.ended?.({ ...END, elapsedNs: 1000 })
  t.same(valuesOf(), [5101, 17_050, 1, 1, 1])
  t.end()
})

await t.test('the flag says how latencies are shown', (t) => {
  t.same(read(), { hasCounters: true, hasHistograms: false, quantiles: undefined })
  t.same(read('summary_latencies=true').quantiles, [0.5, 0.9, 0.95, 0.99, 0.999])
  const rows = [
    ['nope=1', /got "nope=1", want counter_latencies=/],
    ['summary_latencies=yes', /got summary_latencies=yes, want true or false/],
    ['summary_quantiles=0.5', /got summary_quantiles=0.5, want QUANTILE:ERROR/],
    ['summary_quantiles=2:0.1', /got summary_quantiles=2:0.1/],
  ] as const
  for (const [text, message] of rows) {
    t.throws(() => read(text), { reason: 'FLAG_INVALID', message })
  }
  t.end()
})
