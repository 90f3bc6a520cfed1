import { setTimeout as delay } from 'node:timers/promises'
import { until } from '@tutti/chassis/testing'
import t from 'tap'
import type { HistoryEvent } from '../processes/history-check.ts'
import { RELAYS_HELD, watchRelays } from './relay-watch.ts'

await t.test('a process that stands still holds its relays until all is settled', async (t) => {
  const events: HistoryEvent[] = []
  const settled = Promise.withResolvers<void>()
  const relays = watchRelays({
    record: (event) => void events.push(event),
    nextFault: () => 7,
    settled: () => settled.promise,
  })
  const endsAt = performance.now() + 1200
  while (performance.now() < endsAt) {}
  await until('the fault is recorded', () => events.length > 0)
  t.same(events[0], { type: 'struck', fault: 7, kind: RELAYS_HELD })
  const stopped = relays.stop()
  t.equal(await Promise.race([stopped, delay(20, 'waits')]), 'waits')
  settled.resolve()
  await stopped
  t.same(events.at(-1), { type: 'settled', fault: 7 })
})

await t.test('what does not settle fails at the end', async (t) => {
  const relays = watchRelays({
    record: () => {},
    nextFault: () => 1,
    settled: () => Promise.reject(new Error('a member is blind')),
  })
  const endsAt = performance.now() + 1200
  while (performance.now() < endsAt) {}
  await delay(10)
  await t.rejects(relays.stop(), { message: 'a member is blind' })
})
