// needs: nats
import t from 'tap'
import { openClient } from '../grpc-client.ts'
import { ask, describe, type Outcome } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import {
  chainQuestion,
  identityQuestion,
  mixedQuestion,
  slowQuestion,
  versionedQuestion,
} from './questions.ts'
import { howItEnded, logged, mark, untilReady } from './seen.ts'

t.setTimeout(300_000)

/** As long as a request may take: how much is done in the usual 30 s is the machine's matter. */
const flags = ['--exit-timeout-secs=80']
const MODELS = ['slow', 'add_one_batch', 'big_identity', 'versioned']

const notRight = (outcomes: readonly Outcome[]) =>
  outcomes.filter(({ kind }) => kind !== 'right').map(describe)

await t.test('SIGTERM of a step under load', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [router, leaving, staying] = await Promise.all([
    harness.router(),
    harness.step({ models: MODELS, flags }),
    harness.step({ models: MODELS, flags }),
  ])
  await untilReady([router], ['ens_chain', 'ens_slow', 'big_identity', 'ens_versioned'])
  const load = startLoad(t, { targets: [router], clients: 10, question: mixedQuestion })
  await load.more(30)
  const from = mark(router.process)
  leaving.process.kill('SIGTERM')
  t.equal(howItEnded(leaving.process, await leaving.process.exited), '')
  await logged(router.process, from, 'member is gone', { member: leaving.id })
  await load.more(20)
  t.same(notRight(await load.stop()), [], 'no client noticed')

  await t.test('the last one answers what it has before it ends', async (t) => {
    const client = openClient(t, router)
    const isFull = harness.watch.next(staying.id, 'has all', (h) => h.inFlight >= 5)
    const asked = Array.from({ length: 5 }, () => ask(client, slowQuestion(4000)))
    await isFull
    const events: string[] = []
    void staying.process.exited.then(() => events.push('ended'))
    void Promise.all(asked).then(() => events.push('answered'))
    staying.process.kill('SIGTERM')
    t.same(notRight(await Promise.all(asked)), [])
    t.equal(howItEnded(staying.process, await staying.process.exited), '')
    t.equal(events.at(-1), 'ended')
  })
})

await t.test('SIGTERM of a router under load', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [router, step] = await Promise.all([
    harness.router({ flags }),
    harness.step({ models: MODELS }),
  ])
  await untilReady([router], ['ens_chain', 'slow', 'big_identity', 'ens_versioned'])
  const client = openClient(t, router)
  const isFull = harness.watch.next(step.id, 'has all', (h) => h.inFlight >= 8)
  const accepted = [
    ...Array.from({ length: 8 }, () => ask(client, slowQuestion(4000))),
    ask(client, identityQuestion(20_000_000)),
    ask(client, versionedQuestion(4_000_000)),
  ]
  await isFull
  await ask(client, chainQuestion())
  router.process.kill('SIGTERM')
  t.same(notRight(await Promise.all(accepted)), [], 'all that it had accepted is answered')
  t.equal(howItEnded(router.process, await router.process.exited), '')
  const late = await ask(client, chainQuestion())
  t.match(late, { kind: 'error', code: 'UNAVAILABLE' })
  await harness.watch.idle(step.id)
})
