import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import type { Executed, ResponseSink, StepTimes } from '@tutti/tensor'
import { RecordedResponses } from '@tutti/tensor/testing'
import t from 'tap'
import { executeWithRetries, type FailedAttempt } from './retries.ts'
import { answer, tensorBytes, until } from './testing/envelopes.ts'

const TIMES: StepTimes = {
  queueNs: 1,
  computeInputNs: 2,
  computeInferNs: 3,
  computeOutputNs: 4,
  transferNs: 5,
}

/** Attempts that the test ends itself; tried again after `delays`, in order, then no more. */
function open(delays: readonly number[], sink: ResponseSink = new RecordedResponses()) {
  const clock = createManualClock()
  const cancel = new AbortController()
  const attempts: ResponseSink[] = []
  const failures: FailedAttempt[] = []
  const left = [...delays]
  const attempt = (tries: number, inner: ResponseSink): void => {
    attempts.push(inner)
    if (tries !== attempts.length) throw new Error(`attempt ${tries} is number ${attempts.length}`)
  }
  const delayMs = (failed: FailedAttempt): number | undefined => {
    failures.push(failed)
    return left.shift()
  }
  executeWithRetries({ attempt, delayMs, clock, signal: cancel.signal }, sink)
  return { clock, cancel, attempts, failures }
}

const broken = new ServeError('STEP_UNAVAILABLE', 'broken')

await t.test('an attempt that succeeds is the only one', async (t) => {
  const sink = new RecordedResponses()
  const { attempts } = open([0], sink)
  attempts[0]?.send(answer(tensorBytes(1), { final: false }))
  attempts[0]?.send(answer(tensorBytes(1), { index: 1 }))
  t.match(sink.responses, [{ index: 0 }, { index: 1, final: true }])
  t.equal(attempts.length, 1)
})

await t.test('what failed is tried again at once, or later, and then no more', async (t) => {
  const told: [ServeError, Executed, StepTimes | undefined][] = []
  const sink: ResponseSink = {
    send: () => {},
    fail: (...failure) => void told.push([failure[0], failure[1], failure[2]]),
  }
  const { clock, attempts, failures } = open([0, 50], sink)
  attempts[0]?.fail(broken, 'no')
  t.equal(attempts.length, 2, 'at once')
  attempts[1]?.fail(broken, 'no')
  t.equal(attempts.length, 2)
  clock.advance(49)
  t.equal(clock.pending, 1)
  clock.advance(1)
  await until(() => attempts.length === 3)
  attempts[2]?.send(answer(tensorBytes(1), { final: false }))
  attempts[2]?.fail(broken, 'maybe', TIMES)
  t.match(failures, [
    { error: broken, executed: 'no', hasResponded: false, tries: 1 },
    { error: broken, executed: 'no', hasResponded: false, tries: 2 },
    { error: broken, executed: 'maybe', hasResponded: true, tries: 3 },
  ])
  t.match(told, [[{ reason: 'STEP_UNAVAILABLE', details: { attempt: '3' } }, 'maybe', TIMES]])
})

await t.test('a cancel ends the wait for the next attempt', async (t) => {
  const sink = new RecordedResponses()
  const { clock, cancel, attempts } = open([60_000], sink)
  attempts[0]?.fail(broken, 'no')
  cancel.abort(new ServeError('CANCELLED', 'enough'))
  t.match(await sink.all, [{ error: { reason: 'CANCELLED', message: 'enough' } }])
  t.same([attempts.length, clock.pending], [1, 0])
})

await t.test('an attempt hears from the sink whether it is ready', async (t) => {
  const { promise } = Promise.withResolvers<void>()
  const { attempts } = open([], { send: () => {}, fail: () => {}, ready: () => promise })
  t.equal(attempts[0]?.ready?.(), promise)
  t.equal(open([]).attempts[0]?.ready?.(), undefined, 'one that does not say is always ready')
})
