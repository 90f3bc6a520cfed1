import { manifestPlan } from '@tutti/graph/testing'
import { ServerMetrics } from '@tutti/telemetry'
import { NO_TIMES } from '@tutti/tensor'
import t from 'tap'
import { countReport, PartReporter } from './part-report.ts'

const PORTS = { input: ['x'], output: ['y'] }
const plan = manifestPlan(
  {
    inputs: [{ name: 'in', datatype: 'FP32', shape: [4] }],
    outputs: [{ name: 'out', from: 'one.y' }],
    steps: [
      {
        name: 'one',
        modelRef: { name: 'm' },
        inputMap: { x: 'in' },
        onError: { fallback: { modelRef: { name: 'f' } } },
      },
    ],
  },
  { m: PORTS, f: PORTS },
)

/** Counts reports, and lists what the metrics have then. */
async function counted(reports: Parameters<typeof countReport>[1]): Promise<readonly string[]> {
  const metrics = new ServerMetrics()
  for (const model of ['m', 'f']) metrics.addStep({ ensemble: 'e', step: 'one', model })
  const failures: string[] = []
  const replicaCounts = {
    isCounting: true,
    answered: () => {},
    failed: () => void failures.push('failed'),
  }
  const chosen = { replica: { address: { replica: 'r' } } }
  countReport({ metrics, replicaCounts }, reports, {
    plan,
    ensemble: 'e',
    chosen,
    traceId: undefined,
  })
  const text = await metrics.render()
  const lines = text.matchAll(
    /^tutti_step_(compute_seconds_count|retries_total)\{.*step="(\w+)",model="(\w+)"\} (\d+)$/gm,
  )
  return [
    ...failures,
    ...[...lines].flatMap(([, what, step, model, count]) =>
      count === '0' ? [] : `${step} ${model} ${what} ${count}`,
    ),
  ]
}

const labels = (model: string) => ({ ensemble: 'e', step: 'one', model })

await t.test('what a reporter took down is counted', async (t) => {
  const reporter = new PartReporter()
  for (let i = 0; i < 300; i += 1) reporter.metrics.observeStep(labels('m'), NO_TIMES, 5)
  reporter.metrics.observeStep(labels('f'), NO_TIMES, 5)
  reporter.metrics.countStep(labels('m'), 'retried', 2)
  const call = { ensemble: 'e', step: 'one', target: { entry: { name: 'm' } } }
  reporter.replicaCounts.failed(call, 'r', { code: 'INTERNAL' })
  reporter.replicaCounts.failed(call, 'r', { code: 'CANCELLED' })
  t.same(await counted(reporter.steps), [
    'failed',
    'one m compute_seconds_count 300',
    'one f compute_seconds_count 1',
    'one m retries_total 2',
  ])
})

await t.test('a step that the part does not have, or comes again, is not counted', async (t) => {
  const calls = [{ queueNs: 1, computeNs: 1, elapsedNs: 2, isAnswer: true }]
  const report = { step: 'one', model: 'm', calls, more: 0, failures: 0, counts: {} }
  t.same(
    await counted([
      report,
      { ...report, more: 7 },
      { ...report, step: 'two' },
      { ...report, model: 'other' },
      { ...report, step: '__proto__', model: '__proto__' },
    ]),
    ['one m compute_seconds_count 1'],
  )
})
