// needs: nats
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import t from 'tap'
import { openClient } from '../grpc-client.ts'
import { tempFolder } from '../temp-repository.ts'
import { fp32, int64 } from '../tensors.ts'
import { ask } from './asking.ts'
import { SKIP, startHarness } from './harness.ts'
import { ENDLESS, type Question, slowQuestion } from './questions.ts'
import { logged, mark, statistics, untilReady } from './seen.ts'

t.setTimeout(300_000)

/** More than a second on one core: whatever keeps a test from seeing that it runs keeps it from ending as well. */
const LONG = 8000
/** Long enough that a request gets where the test wants it before its time is over. */
const DEADLINE_MS = 3000
/** Of `slow`, as its config leaves it. */
const INSTANCES = 2

/** `slow` twice, each time with rounds of its own, so that either step can be the one that takes long. */
const ENSEMBLE = `
name: "ens_rounds"
platform: "ensemble"
input { name: "x" data_type: TYPE_FP32 dims: 1 }
input { name: "first" data_type: TYPE_INT64 dims: 1 }
input { name: "second" data_type: TYPE_INT64 dims: 1 }
output { name: "y" data_type: TYPE_FP32 dims: 1 }
ensemble_scheduling {
  step {
    model_name: "slow"
    model_version: -1
    input_map { key: "x" value: "x" }
    input_map { key: "rounds" value: "first" }
    output_map { key: "y" value: "middle" }
  }
  step {
    model_name: "slow"
    model_version: -1
    input_map { key: "x" value: "middle" }
    input_map { key: "rounds" value: "second" }
    output_map { key: "y" value: "y" }
  }
}
`

function roundsQuestion(first: number, second: number): Question {
  const x = fp32('x', [3])
  const inputs = [x, int64('first', [first]), int64('second', [second])]
  return { request: { modelName: 'ens_rounds', inputs }, output: 'y', expected: x.data }
}

await t.test('requests that end before they are answered', { skip: SKIP }, async (t) => {
  const ensembles = await tempFolder(t)
  await mkdir(join(ensembles, 'ens_rounds', '1'), { recursive: true })
  await writeFile(join(ensembles, 'ens_rounds', 'config.pbtxt'), ENSEMBLE)
  const harness = await startHarness(t)
  const [router, step] = await Promise.all([
    harness.router({ repositories: [ensembles] }),
    harness.step({ models: ['slow'], flags: ['--log-verbose=1'] }),
  ])
  await untilReady([router], ['ens_rounds', 'slow'])
  const client = openClient(t, router)
  const toStep = openClient(t, step)
  const { watch } = harness
  const busy = (count: number) => watch.next(step.id, `has ${count}`, (h) => h.inFlight >= count)
  /** Runs of the engine that have ended, whoever waited for them. */
  const executions = async () => (await statistics(toStep, 'slow')).executions
  const dropped = (from: number) =>
    logged(step.process, from, 'result dropped, nobody waits for it')
  const cancelled = { kind: 'error', code: 'CANCELLED' }
  const late = { kind: 'error', code: 'DEADLINE_EXCEEDED' }

  await t.test('cancelled while they wait: they leave the queue and never run', async (t) => {
    const before = await executions()
    const isFull = busy(INSTANCES)
    const first = Array.from({ length: INSTANCES }, () => ask(client, slowQuestion(LONG)))
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
    t.equal((await executions()) - before, INSTANCES)
  })

  await t.test('cancelled in the first step: the second never runs', async (t) => {
    const [before, from] = [await executions(), mark(step.process)]
    const cancel = new AbortController()
    const isRunning = busy(1)
    const asked = ask(client, roundsQuestion(LONG, 1), { signal: cancel.signal })
    await isRunning
    cancel.abort()
    t.match(await asked, cancelled)
    await dropped(from)
    await watch.idle(step.id)
    t.equal((await executions()) - before, 1)
  })

  await t.test('cancelled in the second step: its result is dropped', async (t) => {
    const [before, from] = [await statistics(toStep, 'slow'), mark(step.process)]
    const cancel = new AbortController()
    const asked = ask(client, roundsQuestion(1, LONG), { signal: cancel.signal })
    await until('the first step has run', async () => (await executions()) > before.executions)
    await busy(1)
    cancel.abort()
    t.match(await asked, cancelled)
    await dropped(from)
    await watch.idle(step.id)
    const after = await statistics(toStep, 'slow')
    t.equal(after.executions - before.executions, 2)
    t.equal(after.success - before.success, 1, 'only the first step gave something')
  })

  // From here on each test takes an instance for good: an endless run cannot be interrupted.

  await t.test('out of time in the first step: the second never runs', async (t) => {
    const before = await executions()
    const isRunning = busy(1)
    const asked = ask(client, roundsQuestion(ENDLESS, 1), { timeoutMs: DEADLINE_MS })
    await isRunning
    t.match(await asked, late)
    await watch.idle(step.id)
    t.equal(await executions(), before)
  })

  await t.test('out of time in the second step: the first has run', async (t) => {
    const before = await executions()
    const asked = ask(client, roundsQuestion(1, ENDLESS), { timeoutMs: DEADLINE_MS })
    t.match(await asked, late)
    await watch.idle(step.id)
    t.equal(await executions(), before + 1)
  })

  await t.test('out of time in the queue: it never runs', async (t) => {
    const before = await executions()
    const isQueued = watch.next(step.id, 'has it queued', (h) => h.queued === 1)
    const asked = ask(client, slowQuestion(1), { timeoutMs: DEADLINE_MS })
    await isQueued
    t.match(await asked, late)
    await watch.next(step.id, 'has nothing queued', (h) => h.queued === 0)
    t.equal(await executions(), before)
  })
})
