import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { QuotaMeter, QuotaMeters } from './quota-meter.ts'

function isLetIn(act: () => void): boolean {
  try {
    act()
    return true
  } catch (error) {
    if (error instanceof ServeError && error.reason === 'QUOTA_EXCEEDED') return false
    throw error
  }
}

await t.test('a burst is let in at once, then as many as come in a second', async (t) => {
  const clock = createManualClock()
  const meter = new QuotaMeter({ requestsPerSecond: 2, burst: 5 }, clock)
  const many = (count: number) =>
    Array.from({ length: count }, () => isLetIn(() => meter.charge())).filter(Boolean).length
  t.equal(many(20), 5)
  t.match(meter.obstacle, { code: 'RESOURCE_EXHAUSTED', retryAfterMs: 500 })
  clock.advance(499)
  t.equal(many(20), 0)
  t.match(meter.obstacle, { retryAfterMs: 1 })
  clock.advance(1)
  t.equal(many(20), 1)
  clock.advance(1000)
  t.equal(many(20), 2)
  clock.advance(3_600_000)
  t.equal(many(20), 5, 'a pause gives no more than the burst')
})

await t.test('without a burst a second is one', async (t) => {
  const meter = new QuotaMeter({ requestsPerSecond: 3 }, createManualClock())
  t.same(
    [1, 2, 3, 4].map(() => isLetIn(() => meter.charge())),
    [true, true, true, false],
  )
})

await t.test('requests in work are bounded, and what ends makes room', async (t) => {
  const meter = new QuotaMeter({ concurrentRequests: 2 }, createManualClock())
  meter.enter()
  meter.enter()
  t.throws(() => meter.enter(), { code: 'RESOURCE_EXHAUSTED', retryAfterMs: 1000 })
  t.match(meter.obstacle, { reason: 'QUOTA_EXCEEDED' })
  meter.leave()
  t.equal(meter.obstacle, undefined)
  meter.enter()
})

await t.test(
  'whenever they come, no more are let in than the bucket holds and time gives',
  async () => {
    const quota = fc.record({
      requestsPerSecond: fc.integer({ min: 1, max: 50 }),
      burst: fc.integer({ min: 1, max: 50 }),
    })
    fc.assert(
      fc.property(quota, fc.array(fc.nat(400), { maxLength: 300 }), ({ ...one }, pauses) => {
        const clock = createManualClock()
        const meter = new QuotaMeter(one, clock)
        let letIn = 0
        for (const pause of pauses) {
          clock.advance(pause)
          if (isLetIn(() => meter.charge())) letIn += 1
        }
        return letIn <= one.burst + (clock.now() / 1000) * one.requestsPerSecond + 1e-6
      }),
    )
  },
)

await t.test('rules that are read again keep what was used', async (t) => {
  const meters = new QuotaMeters(createManualClock())
  meters.replace(new Map([['a', { requestsPerSecond: 1 }]]))
  meters.get('a')?.charge()
  meters.replace(
    new Map([
      ['a', { requestsPerSecond: 1 }],
      ['b', undefined],
    ]),
  )
  t.throws(() => meters.get('a')?.charge(), { code: 'RESOURCE_EXHAUSTED' })
  t.equal(meters.get('b')?.obstacle, undefined)
  t.ok(meters.get('b'), 'without a quota its bytes count all the same')
  meters.replace(new Map([['a', { concurrentRequests: 1 }]]))
  t.doesNotThrow(() => meters.get('a')?.charge(), 'the quota is another one')
  meters.replace(new Map())
  t.equal(meters.get('a'), undefined)
})
