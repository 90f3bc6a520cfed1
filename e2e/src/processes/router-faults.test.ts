// needs: nats
import t from 'tap'
import { openClient } from '../grpc-client.ts'
import { ask } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import { chainQuestion, identityQuestion, slowQuestion } from './questions.ts'
import { logged, mark, statistics, untilReady } from './seen.ts'

t.setTimeout(300_000)

const MODELS = ['slow', 'add_one_batch', 'big_identity']

await t.test('kill -9 of one of two routers', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [doomed, router, step] = await Promise.all([
    harness.router(),
    harness.router(),
    harness.step({ models: MODELS }),
  ])
  await untilReady([doomed, router], ['ens_chain', 'ens_slow', 'big_identity'])
  const waiting = 40
  const client = openClient(t, doomed)
  const isFull = harness.watch.next(step.id, 'has all', (h) => h.inFlight >= waiting)
  const asked = Array.from({ length: waiting }, () => ask(client, slowQuestion(10_000)))
  const reading = startLoad(t, {
    targets: [doomed],
    clients: 3,
    question: (i) => identityQuestion(4_000_000, i),
  })
  const load = startLoad(t, {
    targets: [router],
    clients: 4,
    question: (i) => (i % 2 === 0 ? chainQuestion(i) : identityQuestion(1_000_000, i)),
  })
  await isFull
  await reading.more(3)
  await load.more(10)
  const from = mark(step.process)
  doomed.process.kill('SIGKILL')

  await t.test('its clients are told by their connection', async (t) => {
    for (const outcome of await Promise.all(asked)) {
      if (outcome.kind !== 'right') t.match(outcome, { kind: 'error', code: 'UNAVAILABLE' })
    }
    for (const outcome of (await reading.stop()).filter(({ kind }) => kind !== 'right')) {
      t.match(outcome, { kind: 'error', code: 'UNAVAILABLE' })
    }
  })

  await t.test('the other serves all the while', async (t) => {
    await load.more(20)
    const outcomes = await load.stop()
    t.same(
      outcomes.filter(({ kind }) => kind !== 'right'),
      [],
    )
  })

  await t.test('the step drops what it did for the dead one', async (t) => {
    await logged(step.process, from, 'peer is gone', { peer: doomed.id })
    await harness.watch.idle(step.id)
    const other = openClient(t, router)
    t.same(await ask(other, slowQuestion(1, 'ens_slow')), { kind: 'right' })
    const { executions } = await statistics(openClient(t, step), 'slow')
    t.ok(executions < waiting, `${executions} runs of ${waiting} requests`)
  })
})
