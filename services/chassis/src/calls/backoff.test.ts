import * as fc from 'fast-check'
import t from 'tap'
import { createManualClock } from '../testing/manual-clock.ts'
import { backoffMs, sleep } from './backoff.ts'

await t.test('waits double up to the longest', async (t) => {
  const o = { firstMs: 100, longestMs: 1000, random: () => 0 }
  t.same(
    [0, 1, 2, 3, 4, 50, 5000].map((attempt) => backoffMs(attempt, o)),
    [50, 100, 200, 400, 500, 500, 500],
  )
})

await t.test('every wait lies in the upper half of its step', async (t) => {
  fc.assert(
    fc.property(
      fc.nat(60),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (attempt, drawn) => {
        const wait = backoffMs(attempt, { firstMs: 10, longestMs: 5000, random: () => drawn })
        const ceiling = Math.min(5000, 10 * 2 ** attempt)
        return wait >= ceiling / 2 && wait <= ceiling
      },
    ),
  )
  const wait = backoffMs(0, { firstMs: 10, longestMs: 10 })
  t.ok(wait >= 5 && wait <= 10)
})

await t.test('sleep ends when its time has come', async (t) => {
  const clock = createManualClock()
  const controller = new AbortController()
  const slept = sleep(100, { clock, signal: controller.signal })
  clock.advance(100)
  await slept
  t.equal(clock.pending, 0)
})

await t.test('sleep ends with the reason of its signal, and takes its timer back', async (t) => {
  const clock = createManualClock()
  const controller = new AbortController()
  const slept = sleep(100, { clock, signal: controller.signal })
  controller.abort()
  await t.rejects(slept, { code: 'CANCELLED', reason: 'CANCELLED' })
  t.equal(clock.pending, 0)
  await t.rejects(sleep(100, { clock, signal: controller.signal }), {
    code: 'CANCELLED',
    reason: 'CANCELLED',
  })
  t.equal(clock.pending, 0)
})
