import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import { parseModelConfig } from '@tutti/model-config'
import { EMPTY_CONTEXT } from '@tutti/tensor'
import t from 'tap'
import { StatisticsRecorder } from '../statistics/statistics.ts'
import { FIRST_RESPONSE_FAMILY, FirstResponses, firstResponseBuckets } from './first-responses.ts'
import { ServerMetrics } from './metrics.ts'
import { readMetricsFlags } from './metrics-flags.ts'

const MODEL = { name: 'm', version: 1, isEnsemble: false }
const REQUEST = { context: EMPTY_CONTEXT, inputs: [], requestedOutputs: [] }
const RESPONSE = { index: 0, final: false, parameters: new Map(), outputs: [] }

await t.test('a request counts once, at its first response', async (t) => {
  const clock = createManualClock()
  const responses = new FirstResponses(clock)
  const observer = responses.add([['model', 'm']], [-1, 0, 2.5])
  const answer = (...delaysMs: readonly number[]) => {
    const watch = observer.began(MODEL, REQUEST, {})
    for (const ms of delaysMs) {
      clock.advance(ms)
      watch?.responded?.(RESPONSE)
    }
    return watch
  }
  answer(0, 5, 5)
  answer(2.5)
  answer(9)
  // One that only fails has no first response.
  const error = new ServeError('INTERNAL', 'x')
  answer()?.ended?.({ error, elapsedNs: 1, batchSize: 1 })
  t.match(responses.family(), { name: FIRST_RESPONSE_FAMILY, type: 'histogram' })
  t.same(
    responses.family().series.map(({ suffix, labels, value }) => [suffix, ...labels.flat(), value]),
    [
      ['_count', 'model', 'm', 3],
      ['_sum', 'model', 'm', 11],
      ['_bucket', 'model', 'm', 'le', '-1', 0],
      ['_bucket', 'model', 'm', 'le', '0', 1],
      ['_bucket', 'model', 'm', 'le', '2.5', 2],
      ['_bucket', 'model', 'm', 'le', '+Inf', 3],
    ],
  )
})

await t.test('a bucket names the last sampled request', (t) => {
  const clock = createManualClock()
  const responses = new FirstResponses(clock)
  const observer = responses.add([['model', 'm']], [5])
  const [first, last] = ['a'.repeat(32), 'b'.repeat(32)]
  const traces = [
    { traceparent: `00-${first}-${'c'.repeat(16)}-01` },
    { traceparent: `00-${last}-${'c'.repeat(16)}-01` },
    { traceparent: `00-${first}-${'c'.repeat(16)}-00` },
    { traceparent: 'none' },
    undefined,
  ]
  for (const trace of traces) {
    const watch = observer.began(MODEL, REQUEST, trace === undefined ? {} : { trace })
    clock.advance(7)
    watch?.responded?.(RESPONSE)
  }
  const exemplars = responses.family().series.map(({ exemplar }) => exemplar)
  const atMs = clock.epochMs() - 21
  const wanted = { traceId: last, value: 7, atMs }
  t.same(exemplars, [undefined, undefined, undefined, wanted])
  t.end()
})

function buckets(text: string) {
  return firstResponseBuckets(parseModelConfig(text, 'config.pbtxt'))
}

await t.test('decoupled models have the series, with the bounds of their configuration', (t) => {
  const decoupled = 'model_transaction_policy { decoupled: true }'
  const own = (family: string) =>
    `${decoupled} model_metrics { metric_control { metric_identifier { family: "${family}" } histogram_options { buckets: [1, 2] } } }`
  t.equal(firstResponseBuckets(undefined), undefined)
  t.equal(buckets(''), undefined)
  t.same(buckets(decoupled), [100, 500, 2000, 5000])
  t.same(buckets(own(FIRST_RESPONSE_FAMILY)), [1, 2])
  t.same(buckets(own('other')), [100, 500, 2000, 5000])
  t.end()
})

await t.test(
  'the series are there where the flag asks for them, as long as their model',
  async (t) => {
    const model = { name: 'm', version: '1', buckets: [5] }
    for (const flag of ['true', 'false']) {
      const flags = { 'metrics-config': [`histogram_latencies=${flag}`] }
      const metrics = new ServerMetrics({ latencies: readMetricsFlags(flags) })
      const recorders = ['1', '2'].map((version) => new StatisticsRecorder({ name: 'm', version }))
      for (const recorder of recorders) metrics.addModel(recorder, model)
      const observers = recorders.map((recorder) => metrics.observerOf(recorder))
      observers[1]?.began(MODEL, REQUEST, {})?.responded?.(RESPONSE)
      const series = `${FIRST_RESPONSE_FAMILY}_count{model="m",version="1"} 1`
      t.equal(metrics.hasHistograms, flag === 'true')
      t.equal((await metrics.render()).includes(series), flag === 'true')
      for (const recorder of recorders) metrics.removeModel(recorder)
      t.notMatch(await metrics.render(), 'model="m"')
    }
  },
)
