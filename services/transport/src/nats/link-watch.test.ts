import { setImmediate as turn } from 'node:timers/promises'
import { createManualClock } from '@tutti/chassis/testing'
import t from 'tap'
import { LinkWatch } from './link-watch.ts'

const SETTINGS = { askEveryMs: 250, deadMs: 3000 }
const TICK_MS = 100

/** A watch of a broker that answers when it is told to. */
function watchBroker() {
  const clock = createManualClock()
  const asked: (() => void)[] = []
  const abandoned: string[] = []
  const connection = {
    isConnected: true,
    flush: () => new Promise<void>((resolve) => void asked.push(resolve)),
    abandon: (why: string): void => {
      connection.isConnected = false
      abandoned.push(why)
    },
  }
  const watch = new LinkWatch(connection, clock, SETTINGS, () => {})
  const tickAfter = (ms: number): void => {
    clock.advance(ms)
    watch.tick(clock.now())
  }
  return {
    abandoned,
    tickAfter,
    tickFor: (ms: number): void => {
      for (let past = 0; past < ms; past += TICK_MS) tickAfter(TICK_MS)
    },
    answer: async (): Promise<void> => {
      for (const resolve of asked.splice(0)) resolve()
      await turn()
    },
  }
}

await t.test('a broker that does not answer is given up', async (t) => {
  const { abandoned, tickFor } = watchBroker()
  tickFor(3200)
  t.same(abandoned, [])
  tickFor(200)
  t.match(abandoned[0], /^the broker was silent for 3[01]00 ms$/)
})

await t.test('an answer that lies unread while this process has no time counts', async (t) => {
  const { abandoned, tickAfter, tickFor, answer } = watchBroker()
  tickFor(2800)
  // The broker answers while this process stands still. Its timers fire first, then it reads.
  tickAfter(1000)
  await answer()
  tickFor(1000)
  t.same(abandoned, [])
})

await t.test('a process that stood still for long gives the broker as long again', async (t) => {
  const { abandoned, tickAfter, tickFor } = watchBroker()
  tickFor(1000)
  tickAfter(60_000)
  tickFor(2500)
  t.same(abandoned, [])
  tickFor(1000)
  t.equal(abandoned.length, 1)
})
