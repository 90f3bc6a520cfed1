import t from 'tap'
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
