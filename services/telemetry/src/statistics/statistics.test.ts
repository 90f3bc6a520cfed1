import { ServeError } from '@tutti/errors'
import { NO_TIMES } from '@tutti/tensor'
import t from 'tap'
import { toFailureReason } from './failure-reasons.ts'
import { StatisticsRecorder } from './statistics.ts'

function recorder(): StatisticsRecorder {
  return new StatisticsRecorder({ name: 'm', version: '2', clock: { epochMs: () => 1234 } })
}

const TIMES = { computeInputNs: 10, computeInferNs: 200, computeOutputNs: 30 }

await t.test('a new recorder is all zeros', async (t) => {
  const none = { count: 0n, ns: 0n }
  t.same(recorder().snapshot(), {
    name: 'm',
    version: '2',
    lastInference: 0n,
    inferenceCount: 0n,
    executionCount: 0n,
    success: none,
    fail: none,
    queue: none,
    computeInput: none,
    computeInfer: none,
    computeOutput: none,
    cacheHit: none,
    cacheMiss: none,
    batchStats: [],
  })
})

await t.test(
  'two requests in one execution: requests count, batch sizes add, the execution is one',
  async (t) => {
    const r = recorder()
    const times = { ...NO_TIMES, ...TIMES }
    r.ended({ elapsedNs: 1000, batchSize: 3, times: { ...times, queueNs: 5 } })
    r.ended({ elapsedNs: 2000, batchSize: 0, times: { ...times, queueNs: 7 } })
    r.recordExecution({ ...TIMES, batchSize: 4 })
    t.match(r.snapshot(), {
      lastInference: 1234n,
      inferenceCount: 4n,
      executionCount: 1n,
      success: { count: 2n, ns: 3000n },
      queue: { count: 2n, ns: 12n },
      computeInput: { count: 2n, ns: 20n },
      computeInfer: { count: 2n, ns: 400n },
      computeOutput: { count: 2n, ns: 60n },
      fail: { count: 0n, ns: 0n },
      batchStats: [
        {
          batchSize: 4n,
          computeInput: { count: 1n, ns: 10n },
          computeInfer: { count: 1n, ns: 200n },
          computeOutput: { count: 1n, ns: 30n },
        },
      ],
    })
  },
)

await t.test(
  'batch statistics stand in order of size, and no batch dimension counts as 1',
  async (t) => {
    const r = recorder()
    for (const batchSize of [8, 2, 0, 1, 8]) r.recordExecution({ ...TIMES, batchSize })
    t.same(
      r.snapshot().batchStats.map(({ batchSize, computeInfer }) => [batchSize, computeInfer.count]),
      [
        [1n, 2n],
        [2n, 1n],
        [8n, 2n],
      ],
    )
  },
)

await t.test('failures count by reason and change nothing else', async (t) => {
  const r = recorder()
  r.recordFailure({ requestNs: 40, reason: 'BACKEND' })
  r.recordFailure({ requestNs: 2, reason: 'OTHER' })
  r.recordFailure({ requestNs: 0, reason: 'OTHER' })
  t.match(r.snapshot(), { fail: { count: 3n, ns: 42n }, inferenceCount: 0n, lastInference: 0n })
  t.same(
    (['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'] as const).map((reason) => r.failures(reason)),
    [0, 0, 1, 2],
  )
})

await t.test('pending goes up and down', async (t) => {
  const r = recorder()
  r.pending += 1
  r.pending += 1
  r.pending -= 1
  t.equal(r.pending, 1)
})

await t.test('sums keep every nanosecond, and a clock that steps back adds nothing', async (t) => {
  const r = recorder()
  const monthNs = 30 * 86_400 * 1e9
  r.recordFailure({ requestNs: monthNs, reason: 'OTHER' })
  r.recordFailure({ requestNs: 1, reason: 'OTHER' })
  r.recordFailure({ requestNs: -5, reason: 'OTHER' })
  r.recordFailure({ requestNs: Number.NaN, reason: 'OTHER' })
  r.recordFailure({ requestNs: 0.6, reason: 'OTHER' })
  t.equal(r.snapshot().fail.ns, BigInt(monthNs) + 2n)
})

await t.test("errors fall into Triton's failure reasons", async (t) => {
  const rows = [
    ['QUEUE_FULL', 'REJECTED'],
    ['QUEUE_TIMEOUT', 'REJECTED'],
    ['CANCELLED', 'CANCELED'],
    ['DEADLINE_EXCEEDED', 'CANCELED'],
    ['ENGINE_FAILED', 'BACKEND'],
    ['ENGINE_STOPPED', 'BACKEND'],
    ['INVALID_REQUEST', 'OTHER'],
  ] as const
  for (const [reason, want] of rows) t.equal(toFailureReason(new ServeError(reason, '')), want)
})
