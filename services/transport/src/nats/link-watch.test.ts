import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { ListenedTime, TICK_MS } from '../members/listened-time.ts'
import { LinkWatch } from './link-watch.ts'

const SETTINGS = { askEveryMs: 250, deadMs: 3000 }

/** A watch of a broker that answers when it is told to. */
function watchBroker() {
  const time = new ListenedTime()
  let now = 0
  time.tick(now)
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
  const watch = new LinkWatch(connection, SETTINGS, () => {})
  const tickAfter = (ms: number): void => {
    now += ms
    watch.tick(time.tick(now))
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

await t.test('time in which this process stood still is no silence of the broker', async (t) => {
  const { abandoned, tickAfter, tickFor } = watchBroker()
  tickFor(1000)
  tickAfter(60_000)
  tickFor(1500)
  t.same(abandoned, [])
  tickFor(1000)
  t.equal(abandoned.length, 1)
})
