import { Histogram, Registry } from 'prom-client'
import t from 'tap'
import { formatMetrics } from '../metrics-text.ts'
import { StepHistograms } from '../statistics/statistics.ts'
import { stepFamilies } from './step-families.ts'

const BUCKETS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
  30,
]

const sorted = (all: string) => all.trim().split('\n').toSorted()

const NO_TIMES = {
  queueNs: 0,
  computeInputNs: 0,
  computeInferNs: 0,
  computeOutputNs: 0,
  transferNs: 0,
}

await t.test('the text is that of prom-client for the same observations', async (t) => {
  const registry = new Registry()
  const theirs = new Histogram({
    name: 'tutti_step_queue_seconds',
    help: 'Time that a step request waited for an instance',
    labelNames: ['ensemble', 'step', 'model'],
    buckets: BUCKETS_S,
    registers: [registry],
  })
  const ours = new StepHistograms()
  const first = { ensemble: 'e', step: 'detect', model: 'm' }
  const second = { ensemble: '', step: '', model: 'quo"te\\d' }
  theirs.zero(second)
  ours.add(second)
  for (const queueNs of [0, 1e5, 1.1e5, 3e8, 1e9, 29.999e9, 3e10, 3.1e10, 1e12]) {
    theirs.observe(first, queueNs / 1e9)
    ours.observe(first, { ...NO_TIMES, queueNs }, queueNs)
  }
  const text = formatMetrics(stepFamilies(ours).slice(0, 1))
  t.same(sorted(text), sorted(await registry.metrics()))
})

await t.test('buckets name the last sampled request, for OpenMetrics alone', async (t) => {
  const steps = new StepHistograms()
  const labels = { ensemble: 'e', step: 'detect', model: 'm' }
  const [first, last] = ['a'.repeat(32), 'b'.repeat(32)]
  steps.observe(labels, { ...NO_TIMES, queueNs: 3e6 }, 3e6)
  t.notMatch(formatMetrics(stepFamilies(steps), { hasExemplars: true }), /trace_id/)
  steps.observe(labels, { ...NO_TIMES, queueNs: 2e6 }, 2e6, first)
  steps.observe(labels, { ...NO_TIMES, queueNs: 4e6 }, 4e6, last)
  steps.observe(labels, { ...NO_TIMES, queueNs: 5e6 }, 5e6)
  steps.observe(labels, { ...NO_TIMES, queueNs: 2e6 }, 2e6, last)
  const [queue, transfer] = stepFamilies(steps)
  const bucket = (le: string) =>
    queue?.series.find(({ labels: [one] }) => one?.[1] === le && one[0] === 'le')?.exemplar
  t.match(bucket('0.0025'), { traceId: last, value: 0.002 })
  t.match(bucket('0.005'), { traceId: last, value: 0.004 })
  t.equal(bucket('0.01'), undefined)
  t.ok(Math.abs((bucket('0.005')?.atMs ?? 0) - Date.now()) < 60_000)
  const exemplar = { traceId: first, value: 0.0025, atMs: 1_700_000_000_250 }
  const series = [{ suffix: '_bucket', labels: [['le', '1']], value: 7, exemplar }] as const
  const family = { name: 'x', help: 'x', type: 'histogram', series } as const
  const line = 'x_bucket{le="1"} 7'
  t.match(formatMetrics([family]), `${line}\n`)
  const example = ` # {trace_id="${first}"} 0.0025 1700000000.25\n`
  t.match(formatMetrics([family], { hasExemplars: true }), line + example)
  t.ok(transfer?.series.some((one) => one.exemplar?.traceId === last))
})

await t.test('a step that is removed starts again at 0', async (t) => {
  const steps = new StepHistograms()
  const step = { ensemble: 'e', step: 'detect', model: 'm' }
  const count = () =>
    stepFamilies(steps).map(({ series }) => series.find(({ suffix }) => suffix === '_count')?.value)
  steps.observe(step, NO_TIMES, 0)
  t.same(count(), [1, 1, 1])
  steps.remove(step)
  t.same(count(), [undefined, undefined, undefined])
  steps.add(step)
  t.same(count(), [0, 0, 0])
})
