// needs: nats

import { until } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { openClient } from '../grpc-client.ts'
import { ask, describe, unclean } from './asking.ts'
import { type Harness, type Peer, SKIP, startHarness } from './harness.ts'
import { startLoad } from './load.ts'
import { chainQuestion, ENDLESS, identityQuestion, slowQuestion } from './questions.ts'
import { logged, mark, untilReady } from './seen.ts'

t.setTimeout(300_000)

const MODELS = ['slow', 'add_one_batch', 'big_identity']

/** Waits until the router serves again, and nothing is left of what was. */
async function recovers(t: Test, harness: Harness, router: Peer, steps: readonly Peer[]) {
  const client = openClient(t, router)
  await until(
    'the router serves',
    async () => (await ask(client, chainQuestion())).kind === 'right',
  )
  t.same(await ask(client, identityQuestion(3_000_000)), { kind: 'right' })
  for (const { id } of [...steps, router]) await harness.watch.idle(id)
}

await t.test('the broker is killed and comes back', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [router, ...steps] = await Promise.all([
    harness.router(),
    harness.step({ models: MODELS }),
    harness.step({ models: MODELS }),
  ])
  await untilReady([router], ['ens_chain', 'ens_slow', 'big_identity'])
  const client = openClient(t, router)
  const busy = steps.map(({ id }) => harness.watch.next(id, 'is busy', (h) => h.inFlight >= 2))
  const load = startLoad(t, {
    targets: [router],
    clients: 4,
    question: (i) => identityQuestion(4_000_000, i),
  })
  const slow = Array.from({ length: 6 }, () => ask(client, slowQuestion(ENDLESS)))
  await Promise.all(busy)
  await load.more(4)

  await t.test('everything in flight fails while it is away', async (t) => {
    await harness.broker.kill()
    const outcomes = await Promise.all(slow)
    t.same(unclean(outcomes), [])
    t.same(
      outcomes.map(({ kind }) => kind),
      slow.map(() => 'error'),
    )
    t.same(unclean(await load.stop()), [])
  })

  await t.test('what is asked meanwhile fails', async (t) => {
    const outcome = await ask(client, chainQuestion())
    t.equal(outcome.kind, 'error')
    t.same(unclean([outcome]), [])
  })

  await t.test('when it is back, all serve as before', async (t) => {
    await harness.broker.restart()
    await recovers(t, harness, router, steps)
  })

  await t.test('a restart under load loses nothing silently', async (t) => {
    const load = startLoad(t, { targets: [router], clients: 6, question: chainQuestion })
    for (let round = 0; round < 3; round += 1) {
      await load.more(20)
      await harness.broker.restart()
    }
    await load.more(20)
    t.same(unclean(await load.stop()), [])
    await recovers(t, harness, router, steps)
  })
})

await t.test('a partition from the broker that heals', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [toRouter, toStep] = [await harness.proxy(), await harness.proxy()]
  const [router, cut, other] = await Promise.all([
    harness.router({ proxy: toRouter }),
    harness.step({ models: MODELS, proxy: toStep }),
    harness.step({ models: MODELS }),
  ])
  await untilReady([router], ['ens_chain', 'big_identity', 'slow'])
  const client = openClient(t, router)

  await t.test('of a step: it is suspect, then gone; the other serves', async (t) => {
    // One for each.
    const areBusy = [cut, other].map(({ id }) =>
      harness.watch.next(id, 'is busy', (h) => h.inFlight === 1),
    )
    const cancel = new AbortController()
    const slow = [0, 1].map(() => ask(client, slowQuestion(ENDLESS), { signal: cancel.signal }))
    await Promise.all(areBusy)
    const from = mark(router.process)
    toStep.stall()
    const suspected = await logged(router.process, from, 'peer is suspect', { peer: cut.id })
    t.same(await ask(client, chainQuestion()), { kind: 'right' })
    await logged(router.process, suspected, 'peer is gone', { peer: cut.id })
    t.match(await Promise.race(slow), { code: 'UNAVAILABLE', reason: 'STEP_LOST' })
    cancel.abort()
    const outcomes = await Promise.all(slow)
    const kept = outcomes.filter((o) => o.kind === 'error' && o.code === 'CANCELLED')
    t.equal(kept.length, 1, outcomes.map(describe).join('; '))
    const healed = mark(router.process)
    toStep.resume()
    await logged(router.process, healed, 'peer appeared', { peer: cut.id })
    await recovers(t, harness, router, [cut, other])
  })

  await t.test('of the router: what is in flight fails before it heals', async (t) => {
    const slow = Array.from({ length: 4 }, () => ask(client, slowQuestion(ENDLESS)))
    const large = ask(client, identityQuestion(30_000_000))
    // Which of them gets how many is the router's to say: on a busy machine one may just be suspect.
    const inFlight = (): number =>
      [cut, other].reduce((sum, { id }) => sum + (harness.watch.latest(id)?.inFlight ?? 0), 0)
    await until('the steps are busy', () => inFlight() >= slow.length)
    toRouter.stall()
    const outcomes = await Promise.all([...slow, large])
    t.same(unclean(outcomes), [])
    t.same(
      (await Promise.all(slow)).map(({ kind }) => kind),
      slow.map(() => 'error'),
    )
    toRouter.resume()
    await recovers(t, harness, router, [cut, other])
  })
})
