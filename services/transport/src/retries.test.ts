import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { Executed, ResponseSink, StepTimes } from '@tutti/tensor'
import t from 'tap'
import { type FailedAttempt, retryOrFail } from './retries.ts'
import { until } from './testing/envelopes.ts'

const TIMES: StepTimes = {
  queueNs: 1,
  computeInputNs: 2,
  computeInferNs: 3,
  computeOutputNs: 4,
  transferNs: 5,
}

const broken = new ServeError('STEP_UNAVAILABLE', 'broken')

/** Attempts that the test lets fail; tried again after `delays`, in order, then no more. */
function open(delays: readonly number[]) {
  const clock = createManualClock()
  const cancel = new AbortController()
  const failures: FailedAttempt[] = []
  const told: [ServeError, Executed, StepTimes | undefined][] = []
  const left = [...delays]
  let tries = 1
  const delayMs = (failed: FailedAttempt): number | undefined => {
    failures.push(failed)
    return left.shift()
  }
  const again = (): void => void (tries += 1)
  const fail = (own: Partial<FailedAttempt> = {}): void => {
    const failed = { error: broken, times: undefined, hasResponded: false, tries, ...own }
    const o = { delayMs, again, clock, signal: cancel.signal }
    const sink = {
      fail: (...[error, executed, times]: Parameters<ResponseSink['fail']>) =>
        void told.push([error, executed, times]),
    }
    retryOrFail({ executed: 'no', ...failed }, o, sink)
  }
  return { clock, cancel, failures, told, fail, tries: () => tries }
}

await t.test('what failed is tried again at once, or later, and then no more', async (t) => {
  const { clock, failures, told, fail, tries } = open([0, 50])
  fail()
  t.equal(tries(), 2, 'at once')
  fail()
  t.equal(tries(), 2)
  clock.advance(49)
  t.equal(clock.pending, 1)
  clock.advance(1)
  await until(() => tries() === 3)
  fail({ executed: 'maybe', times: TIMES, hasResponded: true })
  t.match(failures, [
    { error: broken, executed: 'no', hasResponded: false, tries: 1 },
    { error: broken, executed: 'no', hasResponded: false, tries: 2 },
    { error: broken, executed: 'maybe', hasResponded: true, tries: 3 },
  ])
  t.match(told, [[{ reason: 'STEP_UNAVAILABLE', details: { attempt: '3' } }, 'maybe', TIMES]])
})

await t.test('the failure of the only attempt is passed on as it is', async (t) => {
  const { told, fail } = open([])
  fail()
  t.equal(told[0]?.[0], broken)
})

await t.test('a cancel ends the wait for the next attempt', async (t) => {
  const { clock, cancel, told, fail, tries } = open([60_000])
  fail()
  cancel.abort(new ServeError('CANCELLED', 'enough'))
  await until(() => told.length === 1)
  t.match(told, [[{ reason: 'CANCELLED', message: 'enough' }, 'no', undefined]])
  t.same([tries(), clock.pending], [1, 0])
})

await t.test('a cancel at the moment when the wait ends gets no further attempt', async (t) => {
  const { clock, cancel, told, fail, tries } = open([50])
  fail()
  clock.advance(50)
  cancel.abort(new ServeError('CANCELLED', 'enough'))
  await until(() => told.length === 1)
  t.match(told, [[{ reason: 'CANCELLED', message: 'enough' }, 'no', undefined]])
  t.equal(tries(), 1, 'what the call had lent may be back in use')
})

await t.test('a caller that is gone gets no further attempt, not even at once', async (t) => {
  const { cancel, told, fail, tries } = open([0])
  cancel.abort(new ServeError('CANCELLED', 'enough'))
  fail()
  t.match(told, [[{ reason: 'CANCELLED', message: 'enough' }, 'no', undefined]])
  t.equal(tries(), 1)
})
