import { systemClock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { readLoads } from './load.ts'
import { poissonGaps, runOpenLoop, seededRandom } from './open-loop.ts'
import { planTurns, runLoad } from './run-load.ts'
import { Tally } from './tally.ts'
import { type BenchTurn, runClosedLoop } from './turn.ts'

/** A clock that moves on by `stepMs` at each turn of the event loop, until the test ends. */
function steppingClock(t: Test, stepMs: number) {
  let now = 0
  const timers = new Set<{ readonly at: number; readonly call: () => void }>()
  const step = (): void => {
    now += stepMs
    for (const timer of [...timers].filter(({ at }) => at <= now)) {
      timers.delete(timer)
      timer.call()
    }
    next = setImmediate(step)
  }
  let next = setImmediate(step)
  t.teardown(() => clearImmediate(next))
  return {
    now: () => now,
    epochMs: () => now,
    setTimer: (delayMs: number, call: () => void) => {
      const timer = { at: now + delayMs, call }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
  }
}

/** A server that answers each request after `latencyMs` of the clock. */
function serverOf(clock: ReturnType<typeof steppingClock>, latencyMs: number) {
  const server = { inFlight: 0, most: 0, sent: 0 }
  const send: BenchTurn['send'] = async () => {
    server.sent += 1
    server.inFlight += 1
    server.most = Math.max(server.most, server.inFlight)
    await new Promise<void>((resolve) => clock.setTimer(latencyMs, resolve))
    server.inFlight -= 1
  }
  return { server, send }
}

const read = (concurrency?: string, rate?: string) => readLoads({ concurrency, rate })

const never = new AbortController().signal

await t.test('a closed loop has as many requests in flight as it shall', async (t) => {
  const clock = steppingClock(t, 0.5)
  const { server, send } = serverOf(clock, 10)
  const tally = new Tally()
  await runClosedLoop({ send, tally, durationMs: 1000, clock, signal: never }, 4)
  t.equal(server.most, 4)
  t.equal(server.inFlight, 0, 'all are waited for')
  t.equal(tally.latencies.count, server.sent)
  t.ok(server.sent > 300 && server.sent <= 404, `${server.sent} requests in 100 times 10 ms`)
  t.ok((tally.latencies.quantileMs(0.5) ?? 0) >= 10)
})

await t.test('an open loop counts from when a request was due', async (t) => {
  const clock = steppingClock(t, 0.5)
  const { server, send } = serverOf(clock, 10)
  const tally = new Tally()
  const turn = { send, tally, durationMs: 2000, clock, signal: never }
  // A server that takes 10 ms for one request at a time gets 200 in a second.
  await runOpenLoop(turn, { gapMs: () => 5, rate: 200, maxInFlight: 1 })
  t.equal(server.most, 1)
  t.ok(tally.isFull)
  t.equal(tally.latencies.count, server.sent)
  t.equal(server.sent + tally.unsent, 399, 'every request that was due was sent or counted')
  t.ok(tally.unsent > 180, `${tally.unsent} were not sent`)
  t.ok((tally.latencies.quantileMs(1) ?? 0) > 900, 'the last one waited for those before it')
})

await t.test('an open loop that is followed sends all, whatever the gaps', async (t) => {
  const clock = steppingClock(t, 0.5)
  const { server, send } = serverOf(clock, 1)
  const tally = new Tally()
  const turn = { send, tally, durationMs: 3000, clock, signal: never }
  const gapMs = poissonGaps(100, seededRandom(7))
  await runOpenLoop(turn, { gapMs, rate: 100, maxInFlight: 1000 })
  const again = poissonGaps(100, seededRandom(7))
  let wanted = 0
  for (let at = again(); at < 3000; at += again()) wanted += 1
  t.equal(server.sent, wanted, 'the same seed gives the same requests')
  t.same([tally.unsent, tally.isFull], [0, false])
})

await t.test('an open loop counts all unsent requests at once, however many', async (t) => {
  let now = 0
  const clock = { ...systemClock, now: () => (now += 0.001) }
  const send = async () => void (now = 2e12)
  const tally = new Tally()
  const turn = { send, tally, durationMs: 1e12, clock, signal: never }
  await runOpenLoop(turn, { gapMs: () => 0.001, rate: 1e6, maxInFlight: 1 })
  t.equal(tally.latencies.count, 1)
  t.ok(Math.abs(tally.unsent / 1e15 - 1) < 0.001)
})

await t.test('an open loop has exponential gaps', async (t) => {
  const gapMs = poissonGaps(50, seededRandom(1))
  const gaps = Array.from({ length: 50_000 }, gapMs)
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
  t.ok(Math.abs(mean / 20 - 1) < 0.02, `a mean of ${mean}, want 20`)
  const longer = gaps.filter((gap) => gap > 20).length / gaps.length
  t.ok(Math.abs(longer - Math.exp(-1)) < 0.01, `${longer} are longer than the mean`)
  t.ok(gaps.every((gap) => gap >= 0 && Number.isFinite(gap)))
})

await t.test(
  'a closed loop counts requests that fail at once by reason, and lets the event loop run',
  async (t) => {
    const tally = new Tally()
    let sent = 0
    const send = async () => {
      sent += 1
      throw new ServeError(sent % 3 === 0 ? 'OVERLOADED' : 'SERVER_NOT_READY', `no ${sent}`)
    }
    const stop = new AbortController()
    setTimeout(() => stop.abort(), 20)
    const turn = { send, tally, durationMs: 60_000, clock: systemClock, signal: stop.signal }
    await runClosedLoop(turn, 2)
    t.equal(tally.failedCount + tally.unanswered, sent)
    t.equal(tally.latencies.count, 0, 'an error is no answer')
    t.match(tally.failures, [
      { reason: 'SERVER_NOT_READY', message: 'no 1' },
      { reason: 'OVERLOADED', message: 'no 3' },
    ])
  },
)

await t.test('the end of a run cancels the requests in flight', async (t) => {
  const stop = new AbortController()
  // A server that never answers. The user ends the run when both loops have all that they may have in flight.
  let inFlight = 0
  const send: BenchTurn['send'] = (signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
      inFlight += 1
      if (inFlight === 6) setImmediate(() => stop.abort())
    })
  const o = {
    durationMs: 60_000,
    warmUpMs: 0,
    maxInFlight: 3,
    lastAnswersMs: 60_000,
    clock: systemClock,
    signal: stop.signal,
  }
  const loads = [
    { kind: 'open', rate: 1e6 },
    { kind: 'closed', concurrency: 3 },
  ] as const
  const tallies = await Promise.all(loads.map((load) => runLoad([{ send }], load, o)))
  for (const [tally] of tallies) {
    t.match(tally, { unanswered: 3, failedCount: 0, unsent: 0 })
    t.ok((tally?.elapsedMs ?? 0) < 60_000)
  }
})

/** The calls to a server that never answers. */
const silent: BenchTurn['send'] = (signal) =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true })
  })

await t.test(
  'a server that answers no more is given up after a while, and the others go on',
  async (t) => {
    const clock = steppingClock(t, 1)
    const { server, send } = serverOf(clock, 10)
    const warmUpMs = 20
    const o = {
      durationMs: 200,
      warmUpMs,
      maxInFlight: 3,
      lastAnswersMs: 500,
      clock,
      signal: never,
    }
    for (const load of [
      { kind: 'open', rate: 1000 },
      { kind: 'closed', concurrency: 3 },
    ] as const) {
      const startedAt = clock.now()
      const [dead, alive] = await runLoad([{ send: silent }, { send }], load, o)
      t.match(dead, { unanswered: 3, failedCount: 0, elapsedMs: 100 })
      t.equal((dead?.unsent ?? 0) > 50, load.kind === 'open', 'what was due is counted')
      t.ok((alive?.latencies.count ?? 0) > 20 && alive?.unanswered === 0)
      t.ok(clock.now() - startedAt < 2000, 'it waits for the last answers once, and in the warm-up')
    }
    t.equal(server.inFlight, 0)
  },
)

await t.test('targets take turns, each as long as the others', async (t) => {
  t.same(planTurns(1, 5000), [[0, 5000]])
  t.same(
    planTurns(2, 3000).map(([target]) => target),
    [0, 1, 1, 0, 0, 1],
  )
  const holds = fc.property(fc.integer({ min: 2, max: 4 }), fc.nat(90), (targets, seconds) => {
    const durationMs = (seconds + 1) * 1000
    const times = Array.from({ length: targets }, () => 0)
    for (const [target, ms] of planTurns(targets, durationMs)) {
      times[target] = (times[target] ?? 0) + ms
    }
    return times.every((ms) => Math.abs(ms - durationMs) < 1e-6)
  })
  fc.assert(holds)
})

await t.test('loads are lists of numbers', async (t) => {
  t.same(read(), [{ kind: 'closed', concurrency: 1 }])
  t.same(read('1,16'), [
    { kind: 'closed', concurrency: 1 },
    { kind: 'closed', concurrency: 16 },
  ])
  t.same(read(undefined, '0.5,1000'), [
    { kind: 'open', rate: 0.5 },
    { kind: 'open', rate: 1000 },
  ])
  for (const text of ['', '0', '1.5', '-1', '1,,2', '1e3', '10001', 'x']) {
    t.throws(() => read(text), { reason: 'FLAG_INVALID', message: /^--concurrency: got/ }, text)
  }
  for (const text of ['', '0', '-1', '1e3', '1000001', 'x', `1${',1'.repeat(20)}`]) {
    t.throws(() => read(undefined, text), { reason: 'FLAG_INVALID', message: /^--rate: got/ }, text)
  }
  t.throws(() => read('1', '1'), { message: '--rate: got --concurrency too, want one of both' })
})
