import t from 'tap'
import { ask, describe, isClean, openClient } from './asking.ts'
import { type Fault, planFaults, TARGETS } from './fault-plan.ts'
import { SKIP, startHarness } from './harness.ts'
import { chainQuestion, identityQuestion, slowQuestion } from './questions.ts'
import { type Fate, type Relayed, startRelay } from './relay.ts'
import { mark, statistics, untilReady } from './seen.ts'

t.setTimeout(300_000)

const FATES = ['lose', 'twice', 'late'] as const
const REPOSITORY = 'default'

/** For what is not part of a call: every fate in turn, for each kind of message apart. */
function inTurn(): (relayed: Relayed) => Fate {
  const turns: readonly Fate[] = ['lose', 'twice', 'late', 'pass', 'pass']
  const counts = new Map<string, number>()
  return ({ channel }) => {
    const count = counts.get(channel) ?? 0
    counts.set(channel, count + 1)
    return turns[count % turns.length] ?? 'pass'
  }
}

await t.test('lost, doubled and reordered messages', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  let routerId = ''
  const plan = planFaults(() => routerId)
  const others = inTurn()
  const relay = await startRelay({
    url: harness.broker.url,
    prefixes: ['tutti', 'far'],
    repository: REPOSITORY,
    fate: (relayed) =>
      relayed.channel === 'ctl' || relayed.channel === 'data'
        ? plan.fate(relayed)
        : others(relayed),
  })
  t.teardown(() => relay.close())
  const models = ['big_identity', 'add_one_batch', 'slow']
  const [router, step] = await Promise.all([
    harness.router(),
    harness.step({ models, prefix: 'far' }),
  ])
  routerId = router.id

  await t.test('of heartbeats, questions and their answers: the step is found', async () => {
    await untilReady([router], ['big_identity', 'ens_chain', 'slow'])
  })

  const client = openClient(t, router)
  const from = mark(router.process)
  const faults = FATES.flatMap((fate) => TARGETS.map((target): Fault => ({ fate, target })))
  const toStep = openClient(t, step)
  const before = await statistics(toStep, 'big_identity')
  const asked = faults.map(async (fault, i) => {
    const question = identityQuestion(2_000_000, i)
    const id = plan.idOf(fault)
    const outcome = await ask(client, { ...question, request: { ...question.request, id } })
    return { ...fault, id, outcome }
  })
  const ended = await Promise.all(asked)

  for (const { fate, target, id, outcome } of ended) {
    await t.test(`${fate}: ${target}`, async (t) => {
      t.ok(plan.struck.has(id), 'it happened')
      if (fate === 'lose') t.ok(isClean(outcome), describe(outcome))
      else t.equal(describe(outcome), 'right')
    })
  }

  await t.test('no call was executed twice', async (t) => {
    const after = await statistics(toStep, 'big_identity')
    const executed = after.success + after.failure - before.success - before.failure
    t.ok(executed <= plan.calls, `${executed} executions of ${plan.calls} calls`)
  })

  await t.test('a cancel reaches the step', async (t) => {
    const cancel = new AbortController()
    const isBusy = harness.watch.next(step.id, 'is busy', (h) => h.inFlight > 0)
    const asked = ask(client, slowQuestion(5000), { signal: cancel.signal })
    await isBusy
    cancel.abort()
    t.match(await asked, { kind: 'error', code: 'CANCELLED' })
    await harness.watch.idle(step.id)
  })

  await t.test('nothing is left, and all goes on', async (t) => {
    for (const { id } of [router, step]) await harness.watch.idle(id)
    t.same(await ask(client, identityQuestion(3_000_000)), { kind: 'right' })
    t.same(await ask(client, chainQuestion()), { kind: 'right' })
    const gone = router.process.lines.slice(from).filter((line) => line.includes('peer is gone'))
    t.same(gone, [], 'lost heartbeats, one in five, are no reason to judge')
  })
})
