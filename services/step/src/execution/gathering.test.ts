import t from 'tap'
import { taken } from '../testing/batching-simulation.ts'
import {
  createSchedulerRig,
  dynamicBatching,
  executedIds,
  scriptedConfig,
} from '../testing/scheduler-rig.ts'
import { batchRequest } from '../testing/step-builders.ts'

const batching = (rest = {}) =>
  scriptedConfig({ dynamic_batching: dynamicBatching({ preferred_batch_size: [4], ...rest }) })

await t.test('a request that does not fit the waiting batch sends it off', async (t) => {
  const { model, submit } = createSchedulerRig({
    config: batching({ max_queue_delay_microseconds: 5000 }),
    instances: 2,
  })
  submit('a', batchRequest({ id: 'a', width: 4 }))
  submit('b', batchRequest({ id: 'b', width: 5 }))
  await new Promise(setImmediate)
  t.same(executedIds(model), ['a'])
})

await t.test(
  'requests that come together share a batch, although an instance is free, and one alone starts at once',
  async (t) => {
    const { model, submit, scheduler } = createSchedulerRig({ config: batching(), instances: 3 })
    submit('a')
    t.same(executedIds(model), ['a'])
    const others = ['b', 'c', 'd', 'e', 'f'].map((name) => submit(name))
    t.equal(scheduler.load.queued, 5)
    others[1]?.cancel()
    await new Promise(setImmediate)
    t.same(executedIds(model), ['a', 'bdef'])
    submit('g')
    model.at(0).finish()
    await model.begun(3)
    t.same(executedIds(model), ['a', 'bdef', 'g'])
  },
)

await t.test(
  'with an automatic delay a batch waits for what is about to come, as measured',
  async (t) => {
    const rig = createSchedulerRig({ config: batching(), isAutoDelayed: true })
    const { clock, model, submit, scheduler } = rig
    const finish = (): void => {
      const computeInferNs = 11e6
      model.executions.at(-1)?.finish({ computeInputNs: 0, computeInferNs, computeOutputNs: 0 })
    }
    // Executions cost 10 ms, and 1 ms for each request; requests come 1 ms apart.
    for (let i = 0; i < 32; i += 1) {
      scheduler.context.autoDelay?.executed(1 + (i % 4), taken(11 + (i % 4)))
      scheduler.context.autoDelay?.arrived(i - 32, true)
    }
    t.equal(scheduler.context.autoDelay?.delayMs, 1)
    submit('a')
    t.equal(model.executions.length, 0, 'it is held')
    clock.advance(0.5)
    submit('b')
    await new Promise(setImmediate)
    clock.advance(0.4)
    t.equal(model.executions.length, 0)
    clock.advance(0.6)
    t.equal(executedIds(model).at(-1), 'ab')
    const held = submit('c')
    finish()
    await new Promise(setImmediate)
    clock.advance(20)
    t.equal(executedIds(model).at(-1), 'c', 'it waits no longer than the bound')
    finish()
    await held.done
    t.equal(clock.pending, 0)
  },
)

await t.test(
  'without it, or where the configuration has a delay, nothing is measured',
  async (t) => {
    t.equal(createSchedulerRig({ config: batching() }).scheduler.context.autoDelay, undefined)
    const config = batching({ max_queue_delay_microseconds: 5 })
    t.equal(
      createSchedulerRig({ config, isAutoDelayed: true }).scheduler.context.autoDelay,
      undefined,
    )
  },
)
