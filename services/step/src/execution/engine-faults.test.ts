import t from 'tap'
import { createSchedulerRig, dynamicBatching, scriptedConfig } from '../testing/scheduler-rig.ts'

const decoupled = { model_transaction_policy: { decoupled: true } }

/** Lets everything run that waits for a promise. */
const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

await t.test('a reader may leave while it is given what waited for its turn', async (t) => {
  const config = scriptedConfig({
    ...decoupled,
    dynamic_batching: dynamicBatching({ preferred_batch_size: [1], preserve_ordering: true }),
  })
  const { model, submit, scheduler } = createSchedulerRig({ config, instances: 2 })
  const [a, b] = [submit('a'), submit('b')]
  const send = b.sink.send.bind(b.sink)
  b.sink.send = (response) => {
    send(response)
    b.cancel()
  }
  for (const index of [0, 1]) model.at(1).send(0, { index, final: false })
  model.at(0).finish()
  await a.done
  await b.done
  t.same([a.outcome, b.outcome], ['OK', 'CANCELLED CANCELLED'])
  t.equal(b.sink.responses.length, 2, 'the first of two, and the end')
  model.at(1).finish()
  await settle()
  t.same(scheduler.load, { inFlight: 0, queued: 0, freeSlots: 2 })
})
