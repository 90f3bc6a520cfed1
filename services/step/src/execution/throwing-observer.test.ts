import {
  notingObserver,
  OBSERVED_EVENTS,
  ObservedMetrics,
  throwingObserver,
} from '@tutti/telemetry/testing'
import t from 'tap'
import { createSchedulerRig } from '../testing/scheduler-rig.ts'

for (const event of OBSERVED_EVENTS) {
  await t.test(`an observer that throws at ${event} costs nothing of the requests`, async (t) => {
    const metrics = new ObservedMetrics(throwingObserver(event))
    const { model, submit, scheduler, statistics } = createSchedulerRig({ metrics })
    const requests = ['a', 'b', 'c'].map((id) => submit(id))
    requests[1]?.cancel()
    const drained = scheduler.drain()
    model.at(0).finish()
    await model.begun(2)
    model.at(1).finish()
    await Promise.all(requests.map(({ done }) => done))
    t.same(
      requests.map(({ outcome }) => outcome),
      ['OK', 'CANCELLED CANCELLED', 'OK'],
    )
    await drained
    await new Promise(setImmediate)
    t.same(scheduler.load, { inFlight: 0, queued: 0, freeSlots: 1 })
    t.match(statistics.snapshot(), { success: { count: 2n }, fail: { count: 1n } })
    t.equal(statistics.pending, 0)
  })
}

await t.test('each request ends, and is answered once, whichever way it goes', async (t) => {
  const notes: string[] = []
  const metrics = new ObservedMetrics(notingObserver(notes))
  const { model, submit } = createSchedulerRig({ metrics, maxQueuedRequests: 1 })
  const waited = ['began', 'queued', 'dequeued']
  const answered = submit('a')
  t.same(notes.splice(0), waited)
  const cancelled = submit('b')
  const refused = submit('c')
  t.same(notes.splice(0), ['began', 'queued', 'began', 'ended OVERLOADED maybe', 'answered'])
  cancelled.cancel()
  t.same(notes.splice(0), ['dequeued', 'ended CANCELLED maybe', 'answered'])
  model.at(0).finish()
  await answered.done
  t.same(notes.splice(0), ['ended', 'responded', 'answered'])
  await Promise.all([cancelled.done, refused.done])
})
