import * as fc from 'fast-check'
import t from 'tap'
import { type Arrivals, simulateBatching, taken } from '../testing/batching-simulation.ts'
import { addOffer, queueRules } from '../testing/queue-model.ts'
import { AutoDelay } from './auto-delay.ts'
import { RequestQueue } from './request-queue.ts'

const linear = (fixedMs: number, itemMs: number) => (size: number) => fixedMs + itemMs * size

function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}

/** Executions cost 10 ms, and 1 ms for each item; requests come every `gapMs`, the last one at 0. */
function learnt(gapMs: number, count = 64): AutoDelay {
  const delay = new AutoDelay()
  for (let i = 0; i < 32; i += 1) delay.executed(1 + (i % 4), taken(11 + (i % 4)))
  for (let i = count; i >= 0; i -= 1) delay.arrived(-i * gapMs, true)
  return delay
}

const one = { count: 1, size: 1, endsAt: Number.POSITIVE_INFINITY }

await t.test('a batch waits for the next request as long as that saves more', async (t) => {
  t.ok(Math.abs(learnt(2).savedMs - 10) < 0.01, 'a request that joins saves what is fixed')
  t.equal(learnt(2).holdUntil(one, 0), 2, 'half of 10 ms for each of two is more than 2 ms')
  t.equal(learnt(2).holdUntil({ ...one, count: 4, size: 4 }, 0), 0, 'a fifth of 10 ms is not')
  t.equal(learnt(5.5).holdUntil(one, 0), 0)
  t.equal(learnt(5.5).delayMs, 0)
  t.equal(learnt(2).delayMs, 2)
  t.equal(learnt(2).holdUntil(one, 2.5), 2.5, 'the gap is longer than any: nothing is expected')
})

await t.test('nothing waits before arrivals and executions have been seen', async (t) => {
  const fresh = new AutoDelay()
  fresh.arrived(0, true)
  t.equal(fresh.holdUntil(one, 0), 0)
  const alike = new AutoDelay()
  for (let i = 0; i < 9; i += 1) {
    alike.executed(1, taken(10))
    alike.arrived(i, true)
  }
  t.equal(alike.holdUntil(one, 8), 8, 'batches of one size do not tell what another request saves')
})

await t.test('batches of one size leave what was learnt of others as it is', async (t) => {
  const delay = learnt(2)
  for (let i = 0; i < 1000; i += 1) delay.executed(4, taken(14))
  t.ok(Math.abs(delay.savedMs - 10) < 0.01, String(delay.savedMs))
})

await t.test('no request is held into its timeout or deadline', async (t) => {
  t.equal(learnt(2).holdUntil({ ...one, endsAt: 14 }, 0), 2, 'two and eleven, and a timer late')
  t.equal(learnt(2).holdUntil({ ...one, endsAt: 13 }, 0), 1)
  t.equal(learnt(2).holdUntil({ ...one, endsAt: 11 }, 0), 0)
  for (const [timeoutUs, deadline] of [
    [9000, Number.POSITIVE_INFINITY],
    [0, 9],
  ] as const) {
    const rules = queueRules({
      policy: { defaultTimeoutUs: 60_000_000, allowTimeoutOverride: true },
    })
    const queue = new RequestQueue<string>(rules, {
      delay: learnt(2),
      deadlineOf: () => deadline,
    })
    addOffer(queue, { item: 'a', timeoutUs })
    t.same(queue.next(0), ['a'], `timeout ${timeoutUs} us, deadline ${deadline} ms`)
  }
})

await t.test('a preferred size goes at once, and below it the batch waits', async (t) => {
  const rules = queueRules({ preferred: [2, 4] })
  const auto = { delay: learnt(0.5), deadlineOf: () => Number.POSITIVE_INFINITY }
  const queue = new RequestQueue<string>(rules, auto)
  addOffer(queue, { item: 'a' })
  t.equal(queue.next(0), 0.5)
  addOffer(queue, { item: 'b', at: 0.5 })
  t.same(queue.next(0.5), ['a', 'b'])
  addOffer(queue, { item: 'c', at: 0.6, key: '1' })
  t.equal(queue.next(0.6), 1.1)
  addOffer(queue, { item: 'd', at: 0.7, key: '2' })
  t.same(queue.next(0.7), ['c'], 'what cannot join ends the wait')
})

await t.test('at a low rate, and for a lone client, nothing waits', async (t) => {
  const cases: readonly Arrivals[] = [
    { perMs: 0.01 },
    { clients: 1, thinkMs: 0 },
    { clients: 1, thinkMs: 1 },
    { clients: 1, thinkMs: 50 },
  ]
  for (const arrivals of cases) {
    const scenario = { arrivals, requests: 2000, executionMs: linear(10, 0.2), isAuto: true }
    const { longestHoldMs } = simulateBatching({ ...scenario, random: randomOf(1) })
    t.equal(longestHoldMs, 0, JSON.stringify(arrivals))
  }
})

await t.test('under load it is near the best fixed delay, which it is not told', async (t) => {
  const cases: readonly (readonly [Arrivals, number, number])[] = [
    [{ clients: 4, thinkMs: 1 }, 10, 0.2],
    [{ clients: 16, thinkMs: 1 }, 10, 0.2],
    [{ clients: 16, thinkMs: 5 }, 10, 0.2],
    [{ clients: 64, thinkMs: 3 }, 10, 0.2],
    [{ clients: 16, thinkMs: 1 }, 2, 0.1],
    [{ clients: 16, thinkMs: 1 }, 0.3, 0.02],
    [{ clients: 16, thinkMs: 1 }, 0, 5],
    [{ perMs: 1 }, 10, 0.2],
    [{ perMs: 4 }, 2, 0.1],
  ]
  for (const [arrivals, fixedMs, itemMs] of cases) {
    const common = { arrivals, requests: 3000, executionMs: linear(fixedMs, itemMs), timerMs: 1 }
    const play = (delayMs: number, isAuto: boolean) =>
      simulateBatching({ ...common, isAuto, rules: { max: 32, delayMs }, random: randomOf(7) })
    const fixed = [0, 0.5, 1, 2, 5, 10, 20].map((delayMs) => play(delayMs, false))
    const auto = play(0, true)
    const perSecond = auto.perSecond / Math.max(...fixed.map((one) => one.perSecond))
    const meanMs = auto.meanMs / Math.min(...fixed.map((one) => one.meanMs))
    const name = `${JSON.stringify(arrivals)}, ${fixedMs} + ${itemMs} ms`
    t.ok(perSecond > 0.9, `${name}: ${perSecond.toFixed(3)} of the requests/s`)
    t.ok(meanMs < 1.15, `${name}: ${meanMs.toFixed(3)} of the mean latency`)
  }
})

await t.test('never later than the bound, each once, and in order', (t) => {
  const arrivals = fc.oneof(
    fc.record({ perMs: fc.double({ min: 0.01, max: 4, noNaN: true }) }),
    fc.record({
      clients: fc.integer({ min: 1, max: 40 }),
      thinkMs: fc.double({ min: 0, max: 20, noNaN: true }),
    }),
  )
  fc.assert(
    fc.property(
      arrivals,
      fc.double({ min: 0, max: 20, noNaN: true }),
      fc.double({ min: 0.01, max: 2, noNaN: true }),
      fc.record({
        instances: fc.integer({ min: 1, max: 3 }),
        max: fc.integer({ min: 1, max: 16 }),
      }),
      fc.integer(),
      (arriving, fixedMs, itemMs, { instances, max }, seed) => {
        const { batches, longestHoldMs } = simulateBatching({
          arrivals: arriving,
          requests: 300,
          executionMs: linear(fixedMs, itemMs),
          instances,
          rules: { max },
          isAuto: true,
          random: randomOf(Math.abs(seed)),
        })
        const order = batches.flat()
        const isOrdered = order.every((request, i) => request === i)
        const isLegal = batches.every(({ length }) => length > 0 && length <= max)
        return isOrdered && isLegal && longestHoldMs <= fixedMs + itemMs * max + 1e-6
      },
    ),
    { numRuns: 100 },
  )
  t.end()
})
