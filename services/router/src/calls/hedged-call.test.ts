import { openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { RecordedResponses } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import { type CallAttempt, createStepRig } from '../testing/call-rig.ts'
import { settle, toFloats } from '../testing/index.ts'

const HEDGES = ['tutti_step_hedges_total', 'tutti_step_hedges_won_total']

/** A step that is hedged after 50 ms. */
function hedged(maxPercent = 100, replicas?: readonly string[]) {
  return createStepRig(
    { hedge: { afterMs: 50, maxPercent }, mayRunTwice: true },
    { ...(replicas && { replicas }) },
  )
}

const broken = (text: string) => new ServeError('ENGINE_FAILED', text)

/** Lists what a request was answered with: numbers, reasons. */
function seen({ responses }: RecordedResponses): readonly (number | string | undefined)[] {
  return responses.map(({ outputs, error }) => error?.reason ?? toFloats(outputs[0]?.data)[0])
}

function where(attempts: readonly CallAttempt[]): readonly string[] {
  return attempts.map(({ replica, number }) => `${replica}${number}`)
}

/** Nothing is left of any request. */
function left(rig: ReturnType<typeof hedged>) {
  const { outstanding, lender, router, clock } = rig
  return [outstanding, lender.open, router.memory.count, clock.pending]
}

await t.test('an answer in time is the only one that is asked for', async (t) => {
  const rig = hedged()
  const answered = rig.ask()
  rig.clock.advance(49)
  rig.attempts[0]?.answer(1)
  rig.clock.advance(1000)
  t.same(seen(answered), [1])
  t.equal(rig.attempts.length, 1)
  t.same(await rig.counts(...HEDGES), [0, 0], 'the series are there before the first hedge')
  t.same(left(rig), [0, 0, 0, 0])
})

await t.test('after that time another replica is asked, and the first answer wins', async (t) => {
  for (const winner of [0, 1] as const) {
    const rig = hedged()
    const { attempts, clock } = rig
    const answered = rig.ask()
    const [first = ''] = where(attempts)
    clock.advance(50)
    t.same(where(attempts), [first, first === 'a1' ? 'b2' : 'a2'])
    attempts[winner]?.answer(winner)
    t.same(seen(answered), [winner])
    t.equal(attempts[1 - winner]?.isCancelled, true)
    t.equal(attempts[winner]?.isCancelled, false)
    t.equal(toFloats(attempts[1 - winner]?.inputs[0]?.data)[0], 1, 'the other may still read')
    attempts[1 - winner]?.answer(7)
    t.same(seen(answered), [winner], 'what comes later is dropped')
    t.same(left(rig), [0, 0, 0, 0])
    const [statistics] = await rig.router.statistics('e', '')
    t.equal(statistics?.success.count, 1n, 'the ensemble counts one request')
    t.same(await rig.counts(...HEDGES), [1, winner], 'sent, and won if it answered first')
  }
})

await t.test('a failure waits for the other attempt, and the first one is told', async (t) => {
  const rig = hedged()
  const { attempts, clock } = rig
  const saved = rig.ask()
  clock.advance(50)
  attempts[0]?.fail(broken('first'), 'maybe')
  t.same(seen(saved), [])
  attempts[1]?.answer(2)
  t.same(seen(saved), [2])
  const failed = rig.ask()
  clock.advance(50)
  attempts[3]?.fail(broken('hedge'), 'maybe')
  attempts[2]?.fail(broken('other'), 'maybe')
  t.match(failed.responses, [{ error: { message: "in ensemble 'e', hedge" } }])
  const early = rig.ask()
  attempts[4]?.fail(broken('early'), 'maybe')
  t.same(seen(early), ['ENGINE_FAILED'], 'it has nothing to wait for')
  clock.advance(100)
  t.equal(attempts.length, 5)
  t.same(left(rig), [0, 0, 0, 0])
})

await t.test('what a model says is told, not that another replica was away', async (t) => {
  const rig = hedged()
  const { attempts, clock } = rig
  const failed = rig.ask()
  clock.advance(50)
  for (let next = 1; next < attempts.length; next += 1) {
    attempts[next]?.fail(new ServeError('STEP_UNAVAILABLE', 'gone'), 'no')
    clock.advance(1000)
    await settle()
  }
  t.ok(attempts.length > 1)
  t.same(seen(failed), [])
  attempts[0]?.fail(broken('first'), 'maybe')
  t.same(seen(failed), ['ENGINE_FAILED'])
  t.same(left(rig), [0, 0, 0, 0])
})

await t.test('what cannot have run at either replica is tried again', async (t) => {
  const rig = hedged(100, ['a', 'b', 'c'])
  const { attempts, clock } = rig
  const gone = new ServeError('STEP_UNAVAILABLE', 'gone')
  const answered = rig.ask()
  clock.advance(50)
  attempts[1]?.fail(gone, 'no')
  t.equal(attempts.length, 2, 'the other may still answer')
  attempts[0]?.fail(gone, 'no')
  t.equal(attempts.length, 3)
  t.equal(new Set(attempts.map(({ replica }) => replica)).size, 3)
  clock.advance(50)
  t.equal(attempts.length, 4, 'and is hedged as the first one')
  attempts[2]?.answer(3)
  t.same(seen(answered), [3])
  attempts[3]?.fail(broken('late'), 'maybe')
  t.same(left(rig), [0, 0, 0, 0])
})

await t.test('a replica that loses every hedged request is learnt to be slow', async (t) => {
  const rig = hedged()
  const firsts: string[] = []
  for (let i = 0; i < 60; i += 1) {
    const answered = rig.ask()
    const [first] = rig.attempts.splice(0)
    firsts.push(first?.replica ?? '')
    if (first?.replica === 'b') {
      rig.clock.advance(1)
      first.answer(1)
    } else {
      rig.clock.advance(50)
      const [hedge] = rig.attempts.splice(0)
      rig.clock.advance(1)
      hedge?.answer(1)
      first?.fail(new ServeError('CANCELLED', 'ended'), 'maybe')
    }
    t.same(seen(answered), [1])
  }
  const slow = firsts.filter((replica) => replica === 'a').length
  t.ok(slow > 0 && slow < 8, `${slow} of 60 requests went to the slow one first`)
  t.same(left(rig), [0, 0, 0, 0])
})

await t.test('nothing is hedged where there is no other replica', async (t) => {
  const rig = hedged(100, ['a'])
  const answered = rig.ask()
  rig.clock.advance(1000)
  t.equal(rig.attempts.length, 1)
  rig.attempts[0]?.answer(1)
  t.same(seen(answered), [1])
  t.same(left(rig), [0, 0, 0, 0])
})

await t.test('hedges are a share of the calls', async (t) => {
  const rig = hedged(5)
  const asked = Array.from({ length: 100 }, () => rig.ask())
  rig.clock.advance(50)
  t.equal(rig.attempts.length, 100 + 6, '5 %, and one to begin with')
  t.same(await rig.counts(...HEDGES), [6, 0])
  for (const attempt of rig.attempts) attempt.answer(1)
  t.ok(asked.every((one) => seen(one).length === 1))
  t.same(left(rig), [0, 0, 0, 0])
})

await t.test('a client that leaves ends both', async (t) => {
  const rig = hedged()
  const scope = openCallScope({ clock: rig.clock })
  const asked = rig.ask(scope.context)
  rig.clock.advance(50)
  scope.cancel(new ServeError('CANCELLED', 'the client left'))
  t.same(
    rig.attempts.map(({ isCancelled }) => isCancelled),
    [true, true],
  )
  for (const attempt of rig.attempts) attempt.fail(new ServeError('CANCELLED', 'ended'), 'maybe')
  t.same(seen(asked), ['CANCELLED'])
  t.same(left(rig), [0, 0, 0, 0])
})

await t.test(
  'whatever happens in whatever order, one answer comes and nothing is left',
  async () => {
    const event = fc.record({
      attempt: fc.nat(5),
      what: fc.constantFrom('answer', 'fail', 'refuse', 'wait', 'leave'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 12 }), async (events) => {
        const rig = hedged(100, ['a', 'b', 'c'])
        const { attempts, clock } = rig
        const ended = new Set<CallAttempt>()
        const scope = openCallScope({ clock })
        const asked = rig.ask(scope.context)
        const play = (attempt: CallAttempt | undefined, what: string): void => {
          if (what === 'wait') return clock.advance(50)
          if (what === 'leave') return scope.cancel(new ServeError('CANCELLED', 'left'))
          if (attempt === undefined || ended.has(attempt)) return
          ended.add(attempt)
          if (what === 'answer') attempt.answer(1)
          else if (what === 'fail') attempt.fail(broken('it'), 'maybe')
          else attempt.fail(new ServeError('STEP_UNAVAILABLE', 'gone'), 'no')
        }
        for (const { attempt, what } of events) {
          play(attempts[attempt], what)
          await settle()
        }
        // A request that is tried for the third time waits a moment.
        for (let round = 0; round < 4; round += 1) {
          for (let i = 0; i < attempts.length; i += 1) play(attempts[i], 'fail')
          play(undefined, 'wait')
          await settle()
        }
        scope.close()
        return seen(asked).length === 1 && left(rig).every((count) => count === 0)
      }),
      { numRuns: 300 },
    )
  },
)
