import { openCallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { CallRules } from '@tutti/graph'
import type { RecordedResponses } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import { type CallAttempt, createCallRig, createStepRig } from '../testing/call-rig.ts'
import { chain, ensembleIo, settle, step, toFloats } from '../testing/index.ts'

const UNAVAILABLE = new ServeError('STEP_UNAVAILABLE', 'gone')
const LOST = new ServeError('STEP_LOST', 'contact was lost')
const RETRY = { maxRetries: 2, retryOn: ['UNAVAILABLE'], backoffMs: 20, budgetPercent: 20 } as const
const TWICE: CallRules = { retry: RETRY, mayRunTwice: true }
const RETRIES = ['tutti_step_retries_total', 'tutti_step_retries_refused_total']
const OUTER = `${ensembleIo} ensemble_scheduling { ${step('e', 'IN', 'OUT', { names: ['IN', 'OUT'] })} }`

/** Waits of half the longest. */
const random = (): number => 0.5

/** Lists what a request was answered with: numbers, reasons. */
function seen({ responses }: RecordedResponses): readonly (number | string | undefined)[] {
  return responses.map(({ outputs, error }) => error?.reason ?? toFloats(outputs[0]?.data)[0])
}

function where(attempts: readonly CallAttempt[]): readonly string[] {
  return attempts.map(({ replica, number }) => `${replica}${number}`)
}

await t.test('what may have run is tried again elsewhere if it may run twice', async (t) => {
  const rig = createStepRig(TWICE, { random })
  const { attempts, clock } = rig
  const asked = rig.ask()
  const [first = ''] = where(attempts)
  attempts[0]?.fail(LOST, 'maybe')
  clock.advance(9)
  await settle()
  t.equal(attempts.length, 1)
  clock.advance(1)
  await settle()
  t.same(where(attempts), [first, first === 'a1' ? 'b2' : 'a2'])
  attempts[1]?.fail(LOST, 'maybe')
  clock.advance(20)
  await settle()
  t.equal(attempts.length, 3)
  attempts[2]?.answer(3)
  attempts[0]?.answer(1)
  t.same(seen(asked), [3], 'what an attempt says after its failure is dropped')
  t.same(await rig.counts(...RETRIES), [2, 0])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('the last failure is told, with the number of attempts', async (t) => {
  const rig = createStepRig(TWICE, { random })
  const asked = rig.ask()
  for (let i = 0; i < 3; i += 1) {
    rig.attempts[i]?.fail(LOST, 'maybe')
    rig.clock.advance(100)
    await settle()
  }
  t.equal(rig.attempts.length, 3)
  t.match(asked.responses, [{ error: { reason: 'STEP_LOST', details: { attempt: '3' } } }])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('what may have run is not tried again without the promise', async (t) => {
  const rig = createStepRig({ retry: { ...RETRY, maxRetries: 5 } }, { random })
  const lost = rig.ask()
  rig.attempts[0]?.fail(LOST, 'maybe')
  t.same(seen(lost), ['STEP_LOST'])
  const refused = rig.ask()
  for (let i = 1; i < 7; i += 1) {
    rig.attempts[i]?.fail(UNAVAILABLE, 'no')
    rig.clock.advance(1000)
    await settle()
  }
  t.equal(rig.attempts.length, 7, 'what cannot have run is, as often as the rule says')
  t.same(seen(refused), ['STEP_UNAVAILABLE'])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('full queues are tried again if the rule names them', async (t) => {
  const full = new ServeError('QUEUE_FULL', 'Exceeds maximum queue size')
  for (const [retryOn, count] of [
    [['UNAVAILABLE'], 1],
    [['RESOURCE_EXHAUSTED'], 2],
  ] as const) {
    const rig = createStepRig({ retry: { ...RETRY, maxRetries: 1, retryOn } }, { random })
    const asked = rig.ask()
    for (let i = 0; i < 2; i += 1) {
      rig.attempts[i]?.fail(full, 'maybe')
      rig.clock.advance(100)
      await settle()
    }
    t.same([rig.attempts.length, seen(asked)], [count, ['QUEUE_FULL']])
  }
})

await t.test('a hedged call is tried again once both have failed', async (t) => {
  const rules = { ...TWICE, hedge: { afterMs: 50, maxPercent: 100 } }
  const rig = createStepRig(rules, { random, replicas: ['a', 'b', 'c'] })
  const { attempts, clock } = rig
  const asked = rig.ask()
  clock.advance(50)
  attempts[1]?.fail(LOST, 'maybe')
  clock.advance(100)
  await settle()
  t.equal(attempts.length, 2)
  attempts[0]?.fail(LOST, 'maybe')
  clock.advance(10)
  await settle()
  t.equal(attempts.length, 3)
  t.equal(new Set(attempts.map(({ replica }) => replica)).size, 3, 'at the replica that is left')
  attempts[2]?.answer(1)
  t.same(seen(asked), [1])
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('retries are a share of the calls, and one a second', async (t) => {
  const rig = createStepRig({ ...TWICE, retry: { ...RETRY, maxRetries: 1 } }, { random })
  const { attempts, clock } = rig
  const fail = async (): Promise<void> => {
    for (const attempt of attempts.splice(0)) attempt.fail(LOST, 'maybe')
    clock.advance(10)
    await settle()
  }
  const asked = Array.from({ length: 100 }, () => rig.ask())
  await fail()
  t.equal(attempts.length, 10, 'ten in a row')
  t.equal(asked.filter((one) => seen(one).length === 1).length, 90, 'the others have failed')
  await fail()
  t.same(await rig.counts(...RETRIES), [10, 90])
  for (let i = 0; i < 10; i += 1) {
    rig.ask()
    attempts.splice(0)[0]?.answer(1)
  }
  const next = Array.from({ length: 5 }, () => rig.ask())
  await fail()
  t.equal(attempts.length, 3, '20 % of 15 calls')
  for (const attempt of attempts.splice(0)) attempt.answer(1)
  clock.advance(2000)
  const rare = Array.from({ length: 4 }, () => rig.ask())
  await fail()
  t.equal(attempts.length, 2, 'one for each second')
  for (const attempt of attempts.splice(0)) attempt.answer(1)
  t.ok([...asked, ...next, ...rare].every((one) => seen(one).length === 1))
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('a rule without a budget tries every failure again', async (t) => {
  const { budgetPercent: _, ...retry } = RETRY
  const rig = createStepRig({ retry, mayRunTwice: true }, { random })
  const asked = Array.from({ length: 30 }, () => rig.ask())
  for (const attempt of rig.attempts.slice()) attempt.fail(LOST, 'maybe')
  rig.clock.advance(10)
  await settle()
  for (const attempt of rig.attempts.slice(30)) attempt.answer(1)
  t.same(asked.flatMap(seen), Array<number>(30).fill(1))
  t.same(await rig.counts(...RETRIES), [30, 0])
})

await t.test('an Ensemble within a step is tried again as a whole', async (t) => {
  const rig = createCallRig({
    random,
    ensembles: { e: chain('m', 'm'), outer: OUTER },
    beyond: { outer: { steps: [{ name: 'whole', call: TWICE }] } },
  })
  const { attempts, clock } = rig
  const asked = rig.ask(undefined, 'outer')
  attempts[0]?.answer(1)
  attempts[1]?.fail(LOST, 'maybe')
  clock.advance(10)
  await settle()
  t.equal(attempts.length, 3)
  attempts[2]?.answer(1)
  attempts[3]?.answer(4)
  t.same(seen(asked), [4])
  const [statistics] = await rig.router.statistics('e', '')
  t.same(
    [statistics?.success.count, statistics?.fail.count],
    [1n, 2n],
    'each failure twice, as Triton',
  )
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test('what was tried again within is not tried again around it', async (t) => {
  const rig = createCallRig({
    random,
    ensembles: { e: chain('m'), outer: OUTER, outermost: OUTER.replaceAll('"e"', '"outer"') },
    beyond: {
      e: { steps: [{ name: 'only', call: { ...TWICE, retry: { ...RETRY, maxRetries: 3 } } }] },
      outer: { steps: [{ name: 'whole', call: TWICE }] },
      outermost: { steps: [{ name: 'all', call: TWICE }] },
    },
  })
  for (const [error, executed] of [
    [LOST, 'maybe'],
    [UNAVAILABLE, 'no'],
  ] as const) {
    const asked = rig.ask(undefined, 'outermost')
    for (let i = 0; i < 10; i += 1) {
      rig.attempts[i]?.fail(error, executed)
      rig.clock.advance(1000)
      await settle()
    }
    t.equal(rig.attempts.splice(0).length, 4)
    t.match(asked.responses, [{ error: { details: { step: 'only', attempt: '4' } } }])
  }
  t.same(rig.left, [0, 0, 0, 0])
})

await t.test(
  'whatever happens, attempts are as many as declared, and nothing is left',
  async () => {
    const event = fc.record({
      attempt: fc.nat(6),
      what: fc.constantFrom('answer', 'lost', 'refuse', 'broken', 'wait', 'leave'),
    })
    const rules = fc.record({
      maxRetries: fc.nat(3),
      mayRunTwice: fc.boolean(),
      isHedged: fc.boolean(),
      timeoutMs: fc.constantFrom(30, 10_000),
    })
    await fc.assert(
      fc.asyncProperty(
        rules,
        fc.array(event, { maxLength: 12 }),
        async ({ maxRetries, mayRunTwice, isHedged, timeoutMs }, events) => {
          const hedge = { afterMs: 5, maxPercent: 100 }
          const rig = createStepRig(
            {
              timeoutMs,
              retry: { ...RETRY, maxRetries },
              mayRunTwice: mayRunTwice || isHedged,
              ...(isHedged && { hedge }),
            },
            { random, replicas: ['a', 'b', 'c'] },
          )
          const { attempts, clock } = rig
          const ended = new Set<CallAttempt>()
          let ran = 0
          const scope = openCallScope({ clock })
          const asked = rig.ask(scope.context)
          const play = (attempt: CallAttempt | undefined, what: string): void => {
            if (what === 'wait') return clock.advance(25)
            if (what === 'leave') return scope.cancel(new ServeError('CANCELLED', 'left'))
            if (attempt === undefined || ended.has(attempt)) return
            ended.add(attempt)
            if (what === 'refuse') return attempt.fail(UNAVAILABLE, 'no')
            ran += 1
            if (what === 'answer') attempt.answer(1)
            else if (what === 'lost') attempt.fail(LOST, 'maybe')
            else attempt.fail(new ServeError('ENGINE_FAILED', 'broken'), 'maybe')
          }
          for (const { attempt, what } of events) {
            play(attempts[attempt], what)
            await settle()
          }
          for (let round = 0; round < 8; round += 1) {
            for (let i = 0; i < attempts.length; i += 1) play(attempts[i], 'lost')
            play(undefined, 'wait')
            await settle()
          }
          scope.close()
          const most = (maxRetries + 1) * (isHedged ? 2 : 1)
          if (attempts.length > most) return false
          if (!mayRunTwice && !isHedged && ran > 1) return false
          return seen(asked).length === 1 && rig.left.every((count) => count === 0)
        },
      ),
      { numRuns: 300 },
    )
  },
)
