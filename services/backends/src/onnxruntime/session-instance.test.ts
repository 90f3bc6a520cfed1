import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, silentLogger } from '@tutti/chassis'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import { ADD_CONFIG, addRequest, writeModelFile } from '../testing/add-model.ts'
import { executeOnce, fp32Values } from '../testing/execute.ts'
import { modelSource } from '../testing/model-source.ts'
import { buildAddModel } from '../testing/onnx-writer.ts'
import { createOnnxEngine } from './onnx-engine.ts'

/** A clock whose timers the test fires; `armed` resolves when the next one is set. */
class OrderedClock implements Clock {
  readonly delays: number[] = []
  #callback: (() => void) | undefined
  #isArmed = Promise.withResolvers<void>()

  now(): number {
    return 0
  }

  epochMs(): number {
    return 0
  }

  setTimer(delayMs: number, callback: () => void): () => void {
    this.delays.push(delayMs)
    this.#callback = callback
    this.#isArmed.resolve()
    return () => {
      this.#callback = undefined
    }
  }

  async fire(): Promise<void> {
    await this.#isArmed.promise
    this.#isArmed = Promise.withResolvers<void>()
    this.#callback?.()
  }

  armed(): Promise<void> {
    return this.#isArmed.promise
  }
}

interface Faulty {
  readonly model: LoadedModel
  readonly clock: OrderedClock
  readonly log: string[]
}

async function loadFaulty(t: Test, starts: string, instances = 1): Promise<Faulty> {
  const { directory, remove } = await writeModelFile(buildAddModel(2))
  t.teardown(remove)
  await writeFile(join(directory, 'faults'), starts)
  const clock = new OrderedClock()
  const log: string[] = []
  const engine = createOnnxEngine({
    clock,
    log: {
      ...silentLogger,
      warn: (message, fields) => log.push(`${message}: ${String(fields?.['problem'])}`),
    },
    threadModule: new URL('../testing/faulty-thread.ts', import.meta.url),
  })
  const model = await engine.load(modelSource(directory, ADD_CONFIG), { instances })
  t.teardown(() => model.close())
  return { model, clock, log }
}

await t.test('a thread that ends fails its requests and is started again', async (t) => {
  for (const [fault, problem] of [
    ['throw', 'threw as ordered'],
    ['exit', 'no error was reported'],
  ]) {
    const { model, clock, log } = await loadFaulty(t, `${fault},serve`)
    const failed = await executeOnce(model, [addRequest(1, 0), addRequest(1, 1)])
    for (const { error } of failed) {
      t.match(error, {
        reason: 'ENGINE_STOPPED',
        code: 'UNAVAILABLE',
        message: `the engine thread ended: ${problem}`,
      })
    }
    const next = executeOnce(model, [addRequest(1, 5)])
    await clock.fire()
    const [again] = await next
    t.same(fp32Values(again, 'sum'), [105, 106], 'the next request waits for the new thread')
    t.same(log, [`instance ended, restarting: ${problem}`])
  }
})

await t.test('all executions that are open when a thread ends fail, sent or not', async (t) => {
  const { model, clock } = await loadFaulty(t, 'exit,serve')
  const open = Array.from({ length: 5 }, (_, i) => executeOnce(model, [addRequest(1, i)]))
  for (const [response] of await Promise.all(open)) {
    t.equal(response?.error?.reason, 'ENGINE_STOPPED')
  }
  await clock.fire()
  const [again] = await executeOnce(model, [addRequest(1, 5)])
  t.same(fp32Values(again, 'sum'), [105, 106])
})

await t.test('restarts that fail are answered, and tried again with growing waits', async (t) => {
  const { model, clock, log } = await loadFaulty(t, 'throw,refuse,die,serve')
  await executeOnce(model, [addRequest(1, 0)])
  const first = executeOnce(model, [addRequest(1, 0)])
  await clock.fire()
  const [refused] = await first
  t.match(refused?.error, {
    reason: 'ENGINE_STOPPED',
    message: 'the model cannot be started again: ordered',
  })
  const waiting = executeOnce(model, [addRequest(1, 0)])
  await clock.fire()
  const [died] = await waiting
  t.match(died?.error?.message, /cannot be started again: died as ordered/)
  await clock.fire()
  const [good] = await executeOnce(model, [addRequest(1, 0)])
  t.same(fp32Values(good, 'sum'), [100, 101])
  t.same(clock.delays, [100, 200, 400])
  t.same(log, [
    'instance ended, restarting: threw as ordered',
    'instance did not start: the model cannot be started again: ordered',
    'instance did not start: the model cannot be started again: died as ordered',
  ])
})

await t.test('closing ends the wait for a restart', async (t) => {
  const { model, clock } = await loadFaulty(t, 'throw,serve')
  await executeOnce(model, [addRequest(1, 0)])
  await clock.armed()
  const waiting = executeOnce(model, [addRequest(1, 0)])
  await model.close()
  const [stopped] = await waiting
  t.match(stopped?.error, { reason: 'ENGINE_STOPPED', message: 'the model is being unloaded' })
})

await t.test('a model whose later instances do not start is not loaded', async (t) => {
  for (const starts of ['refuse', 'die', 'serve,refuse', 'serve,die']) {
    await t.rejects(loadFaulty(t, starts, 2), {
      reason: 'MODEL_LOAD_FAILED',
      message: /^failed to load model 'm': (ordered|died as ordered)$/,
    })
  }
})

await t.test('the runtime does not report to its maker', async (t) => {
  const { directory, remove } = await writeModelFile(buildAddModel(2))
  t.teardown(remove)
  const model = await createOnnxEngine().load(modelSource(directory, ADD_CONFIG), { instances: 1 })
  t.teardown(() => model.close())
  t.notOk(existsSync(`/tmp/mat-debug-${process.pid}.log`), 'where its reports are logged')
})
