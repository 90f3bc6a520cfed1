import { openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { RecordedResponses } from '@tutti/tensor/testing'
import t from 'tap'
import { createCallRig, createStepRig } from '../testing/call-rig.ts'
import { chain, ensembleIo, oneToOne, settle, step, toFloats } from '../testing/index.ts'

const UNAVAILABLE = new ServeError('STEP_UNAVAILABLE', 'gone')
const OVER = { timeoutMs: 300 }
const DECOUPLED = `${oneToOne} model_transaction_policy { decoupled: true }`

/** Lists what a request was answered with: numbers, reasons. */
function seen({ responses }: RecordedResponses): readonly (number | string | undefined)[] {
  return responses.map(({ outputs, error }) => error?.reason ?? toFloats(outputs[0]?.data)[0])
}

await t.test('a step that hangs ends after its timeout, and is cancelled', async (t) => {
  const rig = createStepRig(OVER)
  const { attempts, clock } = rig
  const asked = rig.ask()
  t.equal(attempts[0]?.options.deadlineAt, 300, 'its process learns the time')
  clock.advance(299)
  t.same(seen(asked), [])
  t.equal(attempts[0]?.isCancelled, false)
  clock.advance(1)
  t.match(asked.responses, [
    {
      error: {
        code: 'DEADLINE_EXCEEDED',
        reason: 'STEP_TIMEOUT',
        message: "in ensemble 'e', step 'only': no answer within its timeout of 300 ms",
        details: { ensemble: 'e', step: 'only', model: 'm', attempt: '1' },
      },
    },
  ])
  t.equal(attempts[0]?.isCancelled, true)
  attempts[0]?.answer(1)
  attempts[0]?.answer(2)
  t.same(seen(asked), ['STEP_TIMEOUT'], 'what comes late is dropped')
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('an answer in time, and a failure, are passed on as they are', async (t) => {
  const rig = createStepRig(OVER)
  const { attempts, clock } = rig
  const answered = rig.ask()
  clock.advance(299)
  attempts[0]?.answer(1)
  const failed = rig.ask()
  attempts[1]?.fail(new ServeError('ENGINE_FAILED', 'broken'), 'maybe')
  clock.advance(1000)
  t.same([seen(answered), seen(failed)], [[1], ['ENGINE_FAILED']])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('an answer counts by its time, also where the timer is late', async (t) => {
  const rig = createStepRig(OVER)
  const { attempts, clock } = rig
  clock.setTimer(300, () => attempts[1]?.answer(2))
  const inTime = rig.ask()
  const late = rig.ask()
  clock.advance(299.5)
  attempts[0]?.answer(1)
  clock.advance(1)
  t.same([seen(inTime), seen(late)], [[1], ['STEP_TIMEOUT']])
  t.equal(attempts[1]?.isCancelled, true)
  t.equal(clock.pending, 0)
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('the timeout counts over all attempts', async (t) => {
  const rig = createStepRig({ timeoutMs: 5 })
  const { attempts, clock } = rig
  const asked = rig.ask()
  for (const i of [0, 1]) attempts[i]?.fail(UNAVAILABLE, 'no')
  t.equal(attempts.length, 2)
  clock.advance(5)
  await settle()
  t.same(seen(asked), ['STEP_TIMEOUT'], 'while it waits for the third')
  clock.advance(100)
  await settle()
  t.equal(attempts.length, 2)
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('the deadline of the request ends it if it comes first', async (t) => {
  for (const remainingMs of [200, 300]) {
    const rig = createStepRig(OVER)
    const scope = openCallScope({ clock: rig.clock, remainingMs })
    const asked = rig.ask(scope.context)
    rig.clock.advance(300)
    t.match(asked.responses, [{ error: { reason: 'DEADLINE_EXCEEDED' } }])
    rig.attempts[0]?.fail(new ServeError('CANCELLED', 'ended'), 'maybe')
    scope.close()
    t.same(rig.left, [0, 0, 0, 0])
  }
})

await t.test('a process that is a moment ahead does not change the error', async (t) => {
  const rig = createStepRig(OVER)
  const over = new ServeError('DEADLINE_EXCEEDED', 'deadline of 299 ms exceeded')
  const early = rig.ask()
  rig.clock.advance(299.5)
  rig.attempts[0]?.fail(over, 'maybe')
  const own = rig.ask()
  rig.attempts[1]?.fail(over, 'maybe')
  t.same([seen(early), seen(own)], [['STEP_TIMEOUT'], ['DEADLINE_EXCEEDED']])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('a stream is to end within it', async (t) => {
  const rig = createStepRig(OVER, { models: { m: DECOUPLED } })
  const { attempts, clock } = rig
  const asked = rig.ask()
  attempts[0]?.answer(1, false)
  clock.advance(300)
  t.match(asked.responses, [
    { final: false },
    { error: { message: /step 'only': no last response within its timeout of 300 ms/ } },
  ])
  t.equal(attempts[0]?.isCancelled, true)
  attempts[0]?.answer(2)
  t.equal(asked.responses.length, 2)
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('a wait for a slot counts, and its place in the line is given back', async (t) => {
  const bounded = chain('m').replace(
    'ensemble_scheduling {',
    'ensemble_scheduling { max_inflight_requests: 1 ',
  )
  const rig = createStepRig(OVER, { ensembles: { e: bounded } })
  const first = rig.ask()
  rig.clock.advance(200)
  const second = rig.ask()
  t.equal(rig.attempts.length, 1)
  rig.clock.advance(100)
  t.same([seen(first), seen(second)], [['STEP_TIMEOUT'], []])
  rig.attempts[0]?.fail(new ServeError('CANCELLED', 'ended'), 'maybe')
  t.equal(rig.attempts.length, 2)
  rig.attempts[1]?.answer(2)
  t.same(seen(second), [2])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('an Ensemble within a step is cancelled as a model is', async (t) => {
  const outer = `${ensembleIo} ensemble_scheduling { ${step('e', 'IN', 'OUT', { names: ['IN', 'OUT'] })} }`
  const rig = createCallRig({
    ensembles: { e: chain('m'), outer },
    beyond: { outer: { steps: [{ name: 'whole', call: OVER }] } },
  })
  const asked = rig.ask(undefined, 'outer')
  rig.clock.advance(300)
  t.match(asked.responses, [
    {
      error: {
        message: "in ensemble 'outer', step 'whole': no answer within its timeout of 300 ms",
        details: { ensemble: 'outer', step: 'whole', model: 'e' },
      },
    },
  ])
  t.equal(rig.attempts[0]?.isCancelled, true)
  rig.attempts[0]?.answer(1)
  t.same(rig.left, [0, 0, 0, 0])
})
