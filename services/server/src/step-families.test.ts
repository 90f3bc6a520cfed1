import { Histogram, Registry } from 'prom-client'
import t from 'tap'
import { formatMetrics } from './metrics-text.ts'
import { StepHistograms } from './statistics.ts'
import { stepFamilies } from './step-families.ts'

const BUCKETS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
  30,
]

const sorted = (all: string) => all.trim().split('\n').toSorted()

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
  for (const queueS of [0, 0.0001, 0.00011, 0.3, 1, 29.999, 30, 31, 1000]) {
    theirs.observe(first, queueS)
    ours.observe({ ...first, queueS, transferS: 0, computeS: 0 })
  }
  const text = formatMetrics(stepFamilies(ours).slice(0, 1))
  t.same(sorted(text), sorted(await registry.metrics()))
})

await t.test('a step that is removed starts again at 0', async (t) => {
  const steps = new StepHistograms()
  const step = { ensemble: 'e', step: 'detect', model: 'm' }
  const count = () =>
    stepFamilies(steps).map(({ series }) => series.find(({ suffix }) => suffix === '_count')?.value)
  steps.observe({ ...step, queueS: 1, transferS: 1, computeS: 1 })
  t.same(count(), [1, 1, 1])
  steps.remove(step)
  t.same(count(), [undefined, undefined, undefined])
  steps.add(step)
  t.same(count(), [0, 0, 0])
})
