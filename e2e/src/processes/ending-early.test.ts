import t from 'tap'
import { ask, openClient } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { slowQuestion } from './questions.ts'
import { statistics, untilReady } from './seen.ts'
import { until } from './until.ts'

t.setTimeout(300_000)

/** More than anybody waits for: about 80 s on one core. */
const ENDLESS = 400_000
/** Long enough that a request gets where the test wants it before its time is over. */
const DEADLINE_MS = 3000
/** Of `slow`, as its config leaves it. */
const INSTANCES = 2

await t.test('requests that end before they are answered', { skip: SKIP }, async (t) => {
  const harness = await startHarness(t)
  const [router, step] = await Promise.all([harness.router(), harness.step({ models: ['slow'] })])
  await untilReady([router], ['ens_slow'])
  const client = openClient(t, router)
  const toStep = openClient(t, step)
  const { watch } = harness
  const busy = (count: number) => watch.next(step.id, `has ${count}`, (h) => h.inFlight >= count)
  const cancelled = { kind: 'error', code: 'CANCELLED' }
  const late = { kind: 'error', code: 'DEADLINE_EXCEEDED' }

  await t.test('cancelled while they wait: they leave the queue and never run', async (t) => {
    const isFull = busy(INSTANCES)
    const first = Array.from({ length: INSTANCES }, () => ask(client, slowQuestion(8000)))
    await isFull
    const cancel = new AbortController()
    const isQueued = busy(INSTANCES + 5)
    const asked = Array.from({ length: 5 }, () =>
      ask(client, slowQuestion(1), { signal: cancel.signal }),
    )
    await isQueued
    cancel.abort()
    for (const outcome of await Promise.all(asked)) t.match(outcome, cancelled)
    for (const outcome of await Promise.all(first)) t.same(outcome, { kind: 'right' })
    await watch.idle(step.id)
    t.equal((await statistics(toStep, 'slow')).success, INSTANCES)
  })

  await t.test('cancelled in the first step: the second never runs', async (t) => {
    const before = await statistics(toStep, 'slow')
    const cancel = new AbortController()
    const isRunning = busy(1)
    const asked = ask(client, slowQuestion(4000, 'ens_slow'), { signal: cancel.signal })
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

  // An instance is taken until its endless call returns, so what follows needs another step.
  const fresh = await harness.step({ models: ['slow'] })
  step.process.kill('SIGKILL')
  await until('the router has seen it go', () =>
    router.process.lines.some((line) => line.includes('peer is gone')),
  )

  await t.test('out of time in the queue: it never runs', async (t) => {
    const isFull = watch.next(fresh.id, 'is full', (h) => h.inFlight === INSTANCES)
    const first = Array.from({ length: INSTANCES }, () => ask(client, slowQuestion(ENDLESS)))
    await isFull
    t.match(await ask(client, slowQuestion(1), { timeoutMs: DEADLINE_MS }), late)
    await watch.next(fresh.id, 'has nothing queued', (h) => h.queued === 0)
    t.equal((await statistics(openClient(t, fresh), 'slow')).success, 0)
    fresh.process.kill('SIGKILL')
    for (const outcome of await Promise.all(first)) {
      t.match(outcome, { kind: 'error', reason: 'STEP_LOST' })
    }
  })
})
