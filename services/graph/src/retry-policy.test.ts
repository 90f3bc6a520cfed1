import { ServeError } from '@tutti/errors'
import t from 'tap'
import type { StepRetry } from './call-rules.ts'
import { retryDelayMs } from './retry-policy.ts'

const UNAVAILABLE = new ServeError('STEP_UNAVAILABLE', 'no replica')
const LOST = new ServeError('STEP_LOST', 'it went')
const FULL = new ServeError('QUEUE_FULL', 'Exceeds maximum queue size')
const OVERLOADED = new ServeError('OVERLOADED', 'no slot')
const BROKEN = new ServeError('ENGINE_FAILED', 'it broke')
const failed = { error: UNAVAILABLE, executed: 'no', hasResponded: false, tries: 1 } as const
const RETRY: StepRetry = {
  maxRetries: 2,
  retryOn: ['UNAVAILABLE'],
  backoffMs: 20,
  budgetPercent: 20,
}

await t.test('what cannot have run is tried three times', async (t) => {
  t.same(
    [1, 2, 3].map((tries) => retryDelayMs({ ...failed, tries })),
    [0, 10, undefined],
    'at once, after 10 ms, and no more',
  )
})

await t.test('what may have run, or would fail again, is not', async (t) => {
  const table = [
    { executed: 'maybe' },
    { hasResponded: true },
    { error: FULL },
    { error: new ServeError('INVALID_REQUEST', 'no such input') },
    { error: UNAVAILABLE.afterRetries() },
  ] as const
  for (const row of table) t.equal(retryDelayMs({ ...failed, ...row }), undefined)
})

function waits(retry: StepRetry, random: number, tries: readonly number[]) {
  return tries.map((one) => retryDelayMs({ ...failed, tries: one }, { retry }, () => random))
}

await t.test('a rule has a number, and waits that double and are random', async (t) => {
  t.same(waits(RETRY, 0.5, [1, 2, 3]), [10, 20, undefined])
  t.same(waits(RETRY, 0, [1, 2]), [0, 0])
  t.same(waits({ ...RETRY, maxRetries: 0 }, 0.5, [1]), [undefined])
  t.same(waits({ ...RETRY, maxRetries: 10 }, 1, [6, 7, 10]), [640, 1000, 1000], 'up to a second')
  t.same(waits({ ...RETRY, backoffMs: 5000 }, 1, [1, 2]), [5000, 5000])
})

await t.test('a rule allows what its codes name and what may run', async (t) => {
  const all = [...RETRY.retryOn, 'RESOURCE_EXHAUSTED', 'INTERNAL'] as const
  const inner = FULL.withDetails({ step: 'inner' })
  const rows = [
    // error, executed, without names, with names, and those where it may run twice
    [UNAVAILABLE, 'no', true, true, true, true],
    [LOST, 'maybe', false, false, true, true],
    [BROKEN, 'maybe', false, false, false, true],
    [FULL, 'maybe', false, true, false, true],
    [inner, 'maybe', false, false, false, true],
    [OVERLOADED, 'no', false, true, false, true],
    [OVERLOADED, 'maybe', false, false, false, true],
    [new ServeError('INVALID_REQUEST', 'no'), 'no', false, false, false, false],
    [UNAVAILABLE.afterRetries(), 'no', false, false, false, false],
  ] as const
  for (const [error, executed, ...wanted] of rows) {
    const got = [false, true].flatMap((mayRunTwice) =>
      [RETRY, { ...RETRY, retryOn: all }].map((retry) => {
        const delayMs = retryDelayMs({ ...failed, error, executed }, { retry, mayRunTwice })
        return delayMs !== undefined
      }),
    )
    t.same(got, wanted, `${error.reason} ${executed}`)
  }
  const named: StepRetry = { ...RETRY, retryOn: ['INTERNAL'] }
  t.not(retryDelayMs(failed, { retry: named }), undefined, 'names add to what is tried anyway')
  const responded = { ...failed, hasResponded: true }
  t.equal(retryDelayMs(responded, { retry: RETRY, mayRunTwice: true }), undefined)
})
