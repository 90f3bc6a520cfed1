import { ServeError } from '@tutti/errors'
import t from 'tap'
import { createSchedulerRig, dynamicBatching, scriptedConfig } from '../testing/scheduler-rig.ts'
import { batchRequest, RecordingSink } from '../testing/step-builders.ts'

await t.test(
  'an instance that is released takes the next request while the first streams',
  async (t) => {
    const { scheduler, model } = createSchedulerRig({
      config: scriptedConfig({ model_transaction_policy: { decoupled: true } }),
    })
    const { signal } = new AbortController()
    const [first, second] = [new RecordingSink(), new RecordingSink()]
    scheduler.execute(batchRequest({ id: 'a' }), first, { signal })
    scheduler.execute(batchRequest({ id: 'b' }), second, { signal })
    t.equal(model.executions.length, 1, 'the second waits for the instance')
    model.at(0).release()
    t.equal(model.executions.length, 2)
    t.same(scheduler.load, { inFlight: 2, queued: 0, freeSlots: 0 })
    model.at(1).finish()
    await second.all
    model.at(0).finish()
    await first.all
    await new Promise(setImmediate)
    t.same(scheduler.load, { inFlight: 0, queued: 0, freeSlots: 1 }, 'it is given back once')
  },
)

await t.test(
  'an instance executes the next request while the answer to the first is passed on',
  async (t) => {
    const { submit, model, scheduler } = createSchedulerRig()
    model.releasesFirst = true
    const [first, second] = [submit('a'), submit('b')]
    model.at(0).finish()
    t.equal(model.executions.length, 2)
    t.equal(first.outcome, '', 'its times are not known yet')
    await first.done
    t.same(scheduler.load, { inFlight: 1, queued: 0, freeSlots: 0 })
    model.at(1).finish()
    await second.done
    t.same(scheduler.load, { inFlight: 0, queued: 0, freeSlots: 1 }, 'it is given back once')
  },
)

await t.test('an engine hears which caller of a batch has left', async (t) => {
  const { scheduler, model } = createSchedulerRig({
    config: scriptedConfig({
      dynamic_batching: dynamicBatching({
        preferred_batch_size: [2],
        max_queue_delay_microseconds: 1000,
      }),
    }),
  })
  const callers = [new AbortController(), new AbortController()]
  const done = callers.map(({ signal }, i) => {
    const sink = new RecordingSink()
    scheduler.execute(batchRequest({ id: `${i}` }), sink, { signal })
    return sink.all
  })
  await model.begun(1)
  const { abandoned, signal, requests } = model.at(0)
  t.equal(requests.length, 2)
  callers[1]?.abort(new ServeError('CANCELLED', ''))
  t.same(abandoned, [1])
  t.notOk(signal.aborted)
  callers[0]?.abort(new ServeError('CANCELLED', ''))
  t.same(abandoned, [1, 0])
  t.ok(signal.aborted, 'no caller is left')
  model.at(0).end()
  await Promise.all(done)
})
