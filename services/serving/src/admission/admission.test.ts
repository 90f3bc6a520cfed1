import { deepEqual, ok } from 'node:assert/strict'
import * as fc from 'fast-check'
import t from 'tap'
import { actOn } from '../testing/act-on-ticket.ts'
import { Admission } from './admission.ts'
import { ADMISSION_DEFAULTS, compileBounds, outsideShare } from './admission-bounds.ts'

await t.test('requests take places up to the bound and again after one has left', async (t) => {
  const admission = new Admission({ maxRequests: 2 })
  const refusal = {
    reason: 'OVERLOADED',
    code: 'RESOURCE_EXHAUSTED',
    message: 'server is overloaded: 2 requests are in flight, the bound is 2',
  }
  const [first, second, third] = [admission.open(), admission.open(), admission.open()]
  first.enter()
  second.enter()
  t.throws(() => third.enter(), refusal)
  t.throws(() => admission.open(), refusal, 'before anything is read')
  first.close()
  t.doesNotThrow(() => third.enter())
  t.doesNotThrow(() => third.enter(), 'once is enough')
  t.equal(admission.requests, 2)
  first.enter()
  t.equal(admission.requests, 2, 'what is over takes no place')
})

await t.test('bytes are counted up to the bound, and what goes over is not', async (t) => {
  const admission = new Admission({ maxBytes: 100 })
  const ticket = admission.open()
  ticket.charge(60)
  t.throws(() => ticket.charge(41), {
    reason: 'OVERLOADED',
    message:
      'server is overloaded: 60 bytes of requests and answers are in flight, 41 more would go over, the bound is 100',
  })
  ticket.charge(40)
  t.throws(() => admission.open(), { reason: 'OVERLOADED', message: /100 bytes/ })
  ticket.release(1)
  t.doesNotThrow(() => admission.open())
  t.equal(admission.bytes, 99)
})

await t.test('the bounds that are not given are the defaults', async (t) => {
  t.strictSame(new Admission({ maxRequests: 1 }).bounds, { ...ADMISSION_DEFAULTS, maxRequests: 1 })
})

await t.test(
  'requests from outside leave a part of every bound to those from inside',
  async (t) => {
    t.strictSame(outsideShare(compileBounds({ maxRequests: 8, maxBytes: 1000 })), {
      maxRequests: 6,
      maxBytes: 750,
      maxWaitingBytes: 375,
      maxWaitingBytesPerClient: 187,
    })
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 2 ** 30 }), (bound) => {
        const { maxRequests, maxBytes } = outsideShare(
          compileBounds({ maxRequests: bound, maxBytes: bound }),
        )
        return maxRequests >= 1 && maxRequests < bound && maxBytes === maxRequests
      }),
    )
  },
)

await t.test('whatever tickets of a whole and its share do, every bound holds', async () => {
  const step = fc.record({
    ticket: fc.nat(9),
    act: fc.constantFrom('charge', 'release', 'enter', 'leave', 'close'),
    bytes: fc.nat(80),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const whole = new Admission({ maxRequests: 5, maxBytes: 200 })
      const share = new Admission({ maxRequests: 3, maxBytes: 120 }, whole)
      const tickets = Array.from({ length: 10 }, (_, i) => (i < 5 ? whole : share).open())
      for (const { ticket: at, act, bytes } of steps) {
        const ticket = tickets[at]
        if (ticket !== undefined) actOn(ticket, act, bytes)
        check(whole, share)
      }
      for (const ticket of tickets) ticket.close()
      deepEqual([whole.requests, whole.bytes, share.requests, share.bytes], [0, 0, 0, 0])
    }),
    { numRuns: 200 },
  )
})

await t.test('a full share leaves the rest of the places free', async (t) => {
  const whole = new Admission({ maxRequests: 5, maxBytes: 200 })
  const share = new Admission({ maxRequests: 3, maxBytes: 120 }, whole)
  const outside = [share.open(), share.open(), share.open()]
  const late = share.open()
  for (const ticket of outside) ticket.enter()
  outside[0]?.charge(120)
  t.throws(() => late.enter(), { reason: 'OVERLOADED', message: /the bound is 3/ })
  t.throws(() => late.charge(1), { reason: 'OVERLOADED', message: /the bound is 120/ })
  const inside = [whole.open(), whole.open()]
  for (const ticket of inside) ticket.enter()
  inside[0]?.charge(80)
  for (const ticket of outside) ticket.close()
  t.same([share.requests, share.bytes, whole.requests, whole.bytes], [0, 0, 2, 80])
  const more = [share.open(), share.open(), share.open()]
  for (const ticket of more) ticket.enter()
  t.throws(() => share.open(), { reason: 'OVERLOADED', message: /the bound is 3/ })
  more[0]?.close()
  whole.open().enter()
  t.throws(() => share.open(), { reason: 'OVERLOADED', message: /the bound is 5/ }, 'of the whole')
})

function check(whole: Admission, share: Admission): void {
  ok(share.requests <= 3 && share.bytes <= 120)
  ok(whole.requests <= 5 && whole.bytes <= 200)
  ok(0 <= share.requests && share.requests <= whole.requests)
  ok(0 <= share.bytes && share.bytes <= whole.bytes)
}
