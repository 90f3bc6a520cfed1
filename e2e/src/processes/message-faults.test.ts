// needs: nats
import t from 'tap'
import { openClient } from '../grpc-client.ts'
import { ask, describe, isClean } from './asking.ts'
import { type Fault, planFaults, TARGETS } from './fault-plan.ts'
import { SKIP, startHarness } from './harness.ts'
import { chainQuestion, identityQuestion, slowQuestion } from './questions.ts'
import { type Fate, type Relayed, startRelay } from './relay.ts'
import { mark, statistics, untilReady } from './seen.ts'

t.setTimeout(300_000)

const FATES = ['lose', 'twice', 'late'] as const
const NAMES = { prefix: 'tutti', repository: 'default' }
const MODELS = ['big_identity', 'add_one_batch', 'slow']

/** More than a receiver grants at once, so that credits follow; else some chunks. */
const bytesFor = ({ target }: Fault) => (target.startsWith('credit') ? 6_000_000 : 1_500_000)

/** For what is not part of a request: every fate in turn, for each kind of message apart. */
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
    prefixes: [NAMES.prefix, 'far'],
    repository: NAMES.repository,
    fate: (relayed) => plan.fate(relayed) ?? others(relayed),
  })
  t.teardown(() => relay.close())
  const [router, step] = await Promise.all([
    harness.router(),
    harness.step({ models: MODELS, prefix: 'far' }),
  ])
  routerId = router.id

  await t.test('of heartbeats, questions and their answers: the step is found', async () => {
    await untilReady([router], ['big_identity', 'ens_chain', 'slow'])
  })

  const client = openClient(t, router)
  const from = mark(router.process)
  const toStep = openClient(t, step)

  for (const fate of FATES) {
    const questions = TARGETS.map((target, i) => {
      const fault = { fate, target }
      const { request, ...rest } = identityQuestion(bytesFor(fault), i)
      return { target, question: { ...rest, request: { ...request, id: plan.idOf(fault) } } }
    })
    const ended = await Promise.all(
      questions.map(async ({ target, question }) => ({
        target,
        id: question.request.id,
        outcome: await ask(client, question),
      })),
    )
    for (const { target, id, outcome } of ended) {
      await t.test(`${fate}: ${target}`, async (t) => {
        t.ok(plan.struck.has(id), `it happened; ${describe(outcome)}`)
        if (fate === 'lose') t.ok(isClean(outcome), describe(outcome))
        else t.equal(describe(outcome), 'right')
      })
    }
  }

  await t.test('no call was executed twice', async (t) => {
    const { executions } = await statistics(toStep, 'big_identity')
    t.ok(executions <= plan.calls, `${executions} executions of ${plan.calls} calls`)
  })

  await t.test('a cancel reaches the step, whatever becomes of it', async (t) => {
    const cancel = new AbortController()
    const isBusy = harness.watch.next(step.id, 'has all', (h) => h.inFlight === FATES.length)
    const asked = FATES.map((fate) => {
      const { request, ...rest } = slowQuestion(20_000)
      const id = plan.idOf({ fate, target: 'cancel' })
      return ask(client, { ...rest, request: { ...request, id } }, { signal: cancel.signal })
    })
    await isBusy
    cancel.abort()
    for (const outcome of await Promise.all(asked)) t.match(outcome, { code: 'CANCELLED' })
    await harness.watch.idle(step.id)
    for (const fate of FATES) t.ok(plan.struck.has(plan.idOf({ fate, target: 'cancel' })), fate)
  })

  await t.test('nothing is left, and all goes on', async (t) => {
    for (const { id } of [router, step]) await harness.watch.idle(id)
    t.same(await ask(client, identityQuestion(3_000_000)), { kind: 'right' })
    t.same(await ask(client, chainQuestion()), { kind: 'right' })
    const gone = router.process.lines.slice(from).filter((line) => line.includes('peer is gone'))
    t.same(gone, [], 'lost heartbeats, one in five, are no reason to judge')
  })
})
