// needs: nats
import t from 'tap'
import { openClient } from '../grpc-client.ts'
import { ask, describe } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { chainQuestion, ENDLESS, slowQuestion } from './questions.ts'
import { untilReady } from './seen.ts'

t.setTimeout(300_000)

/** Calls that a step accepts at a time, as the transport room says. */
const SLOTS = 1024

await t.test('more requests than a step has slots for', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [router, step] = await Promise.all([
    harness.router(),
    harness.step({ models: ['slow', 'add_one_batch'] }),
  ])
  await untilReady([router], ['slow', 'ens_chain'])
  // The router's door takes so many requests of one connection at a time, so these come over two.
  const clients = [openClient(t, router), openClient(t, router)] as const
  const cancel = new AbortController()
  const isFull = harness.watch.next(step.id, 'is full', (h) => h.inFlight >= SLOTS - 2)
  const asked = Array.from({ length: SLOTS + 50 }, (_, i) =>
    ask(clients[i % 2 === 0 ? 0 : 1], slowQuestion(ENDLESS), { signal: cancel.signal }),
  )
  await isFull

  await t.test('what is too much is refused at once, while all others wait', async (t) => {
    const first = await Promise.race(asked)
    t.match(
      first,
      { kind: 'error', code: 'RESOURCE_EXHAUSTED', reason: 'OVERLOADED' },
      describe(first),
    )
    const heartbeat = await harness.watch.next(step.id, 'is there', () => true)
    t.equal(heartbeat.inFlight, SLOTS)
  })

  await t.test('when they are cancelled, there is room again', async (t) => {
    cancel.abort()
    await Promise.all(asked)
    await harness.watch.idle(step.id)
    t.same(await ask(clients[0], chainQuestion()), { kind: 'right' })
  })
})
