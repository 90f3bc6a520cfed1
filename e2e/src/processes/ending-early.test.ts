import t from 'tap'
import { ask, LONG_MS, openClient } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { slowQuestion } from './questions.ts'
import { statistics, untilReady } from './seen.ts'

t.setTimeout(300_000)

/** More than anybody waits for: about 80 s on one core. */
const ENDLESS = 400_000
/** Long enough that a request gets where the test wants it before its time is over. */
const DEADLINE_MS = 4000

await t.test('requests that end before they are answered', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const flags = ['--model=slow']
  const [router, step] = await Promise.all([harness.router(), harness.step({ flags })])
  await untilReady([router], ['ens_slow'])
  const client = openClient(t, router)
  const toStep = openClient(t, step)
  const { watch } = harness
  const busy = (count: number) =>
    watch.next(step.id, `has ${count}`, (h) => h.inFlight + h.queued >= count)
  const cancelled = { kind: 'error', code: 'CANCELLED' }
  const late = { kind: 'error', code: 'DEADLINE_EXCEEDED' }

  await t.test('cancelled while they wait: they leave the queue and never run', async (t) => {
    const first = ask(client, slowQuestion(20_000))
    await busy(1)
    const cancel = new AbortController()
    const isQueued = busy(6)
    const asked = Array.from({ length: 5 }, () =>
      ask(client, slowQuestion(1), { signal: cancel.signal }),
    )
    await isQueued
    const isAlone = watch.next(step.id, 'has one left', (h) => h.inFlight + h.queued === 1)
    cancel.abort()
    for (const outcome of await Promise.all(asked)) t.match(outcome, cancelled)
    await isAlone
    t.same(await first, { kind: 'right' })
    await watch.idle(step.id)
    t.equal((await statistics(toStep, 'slow')).success, 1)
  })

  await t.test('cancelled in the first step: the second never runs', async (t) => {
    const before = await statistics(toStep, 'slow')
    const cancel = new AbortController()
    const isRunning = busy(1)
    const asked = ask(client, slowQuestion(10_000, 'ens_slow'), { signal: cancel.signal })
    await isRunning
    cancel.abort()
    t.match(await asked, cancelled)
    await watch.idle(step.id)
    t.same(await ask(client, slowQuestion(1)), { kind: 'right' })
    const after = await statistics(toStep, 'slow')
    t.equal(after.success - before.success, 1, 'only the request after it')
  })

  await t.test('out of time in the first step: the second never runs', async (t) => {
    const before = await statistics(toStep, 'slow')
    const asked = ask(client, slowQuestion(ENDLESS, 'ens_slow'), { timeoutMs: DEADLINE_MS })
    t.match(await asked, late)
    const after = await statistics(toStep, 'slow')
    t.equal(after.success, before.success)
  })

  // The instance is taken until the endless call returns, so what follows needs another one.
  const fresh = await harness.step({ flags })
  step.process.kill('SIGKILL')
  await watch.next(fresh.id, 'is there', () => true)

  await t.test('out of time in the queue: it never runs', async (t) => {
    const first = ask(client, slowQuestion(ENDLESS), { timeoutMs: LONG_MS })
    const toFresh = openClient(t, fresh)
    await watch.next(fresh.id, 'has one', (h) => h.inFlight + h.queued >= 1)
    t.match(await ask(client, slowQuestion(1), { timeoutMs: DEADLINE_MS }), late)
    await watch.next(fresh.id, 'has one left', (h) => h.queued === 0)
    t.equal((await statistics(toFresh, 'slow')).success, 0)
    fresh.process.kill('SIGKILL')
    t.match(await first, { kind: 'error', reason: 'STEP_LOST' })
  })
})
