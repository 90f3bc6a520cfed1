// needs: nats
import { peerSubjects } from '@tutti/protocol'
import { connect } from 'nats'
import t from 'tap'
import { openClient } from '../grpc-client.ts'
import { parseLine } from '../serving.ts'
import { ask, describe, isClean } from './asking.ts'
import { type Fault, planFaults, TARGETS } from './fault-plan.ts'
import { SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import { chainQuestion, identityQuestion, type Question, slowQuestion } from './questions.ts'
import { type Fate, type Relayed, startRelay } from './relay.ts'
import { mark, statistics, successes, untilReady } from './seen.ts'
import { ghostOf, startStranger } from './stranger.ts'

t.setTimeout(300_000)

const FATES = ['lose', 'twice', 'late'] as const
const NAMES = { prefix: 'tutti', repository: 'default' }
const MODELS = ['big_identity', 'add_one_batch', 'slow']

/** More than a receiver grants at once, so that credits follow; else some chunks. */
const bytesFor = ({ target }: Fault) => (target.startsWith('credit') ? 6_000_000 : 1_500_000)

/** Inline and in chunks, in turn. */
function inBothWays(i: number): Question {
  return i % 2 === 0 ? chainQuestion(i) : identityQuestion(i % 3 === 0 ? 1_500_000 : 300_000, i)
}

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

await t.test('foreign messages on every subject', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const { url } = harness.broker
  const [router, step] = await Promise.all([harness.router(), harness.step({ models: MODELS })])
  await untilReady([router], ['big_identity', 'ens_chain'])
  const [client, toStep] = [openClient(t, router), openClient(t, step)]
  const stranger = await startStranger({ url, names: NAMES, peers: [router.id, step.id] })
  t.teardown(() => stranger.close())
  t.same(await ask(client, identityQuestion(1_500_000)), { kind: 'right' })
  t.same(await ask(client, chainQuestion()), { kind: 'right' })
  await harness.watch.idle(step.id)
  await stranger.deafen()
  const [routerMark, stepMark] = [mark(router.process), mark(step.process)]

  await t.test('change no answer, and nothing runs twice', async (t) => {
    t.ok(stranger.overheard > 10, `${stranger.overheard} messages were overheard`)
    const load = startLoad(t, { targets: [router], clients: 3, question: inBothWays })
    for (let round = 0; round < 15; round += 1) {
      await stranger.speak()
      await load.more(4)
    }
    const outcomes = await load.stop()
    t.same([...new Set(outcomes.map(describe))], ['right'])
    t.equal(await successes(toStep, 'add_one_batch'), 2 * (1 + Math.ceil(outcomes.length / 2)))
    t.equal(await successes(toStep, 'big_identity'), 1 + Math.floor(outcomes.length / 2))
  })

  await t.test('a step that only says that it serves keeps no request', async (t) => {
    const real = harness.watch.latest(step.id)
    if (real === undefined) throw new Error('the step is not heard')
    const ghost = await connect({ servers: url })
    t.teardown(() => ghost.close())
    const load = startLoad(t, { targets: [router], clients: 3, question: chainQuestion })
    for (let sequence = 1; sequence <= 10; sequence += 1) {
      ghost.publish(peerSubjects(NAMES).heartbeat('ghost'), ghostOf(real, sequence))
      await load.more(4)
    }
    t.same([...new Set((await load.stop()).map(describe))], ['right'])
  })

  await t.test('leave nothing behind', async (t) => {
    for (const { id } of [router, step]) await harness.watch.idle(id)
    t.same(await ask(client, identityQuestion(6_000_000)), { kind: 'right' })
    for (const [peer, from] of [
      [router, routerMark],
      [step, stepMark],
    ] as const) {
      const lines = peer.process.lines.slice(from).map(parseLine)
      t.same(
        lines.filter(({ level }) => level === 'error'),
        [],
      )
      const others = [router.id, step.id]
      const lost = lines.filter(
        (line) => line['message'] === 'peer is gone' && others.includes(String(line['peer'])),
      )
      t.same(lost, [])
    }
  })
})
