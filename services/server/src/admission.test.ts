import * as fc from 'fast-check'
import t from 'tap'
import { ADMISSION_DEFAULTS, Admission, type AdmissionTicket } from './admission.ts'

await t.test('requests are admitted up to the bound and again after one has left', async (t) => {
  const admission = new Admission({ maxRequests: 2 })
  const first = admission.admit()
  admission.admit()
  t.throws(() => admission.admit(), {
    reason: 'OVERLOADED',
    code: 'RESOURCE_EXHAUSTED',
    message: 'server is overloaded: 2 requests are in flight, the bound is 2',
  })
  first.close()
  t.doesNotThrow(() => admission.admit())
  t.equal(admission.requests, 2)
})

await t.test('bytes are counted up to the bound, and what goes over is not', async (t) => {
  const admission = new Admission({ maxBytes: 100 })
  const ticket = admission.admit()
  ticket.charge(60)
  t.throws(() => ticket.charge(41), {
    reason: 'OVERLOADED',
    message:
      'server is overloaded: 60 bytes of requests and answers are in flight, 41 more would go over, the bound is 100',
  })
  ticket.charge(40)
  t.throws(() => admission.admit(), { reason: 'OVERLOADED', message: /100 bytes/ })
  ticket.release(1)
  t.doesNotThrow(() => admission.admit())
  t.equal(admission.bytes, 99)
})

await t.test('the bounds that are not given are the defaults', async (t) => {
  t.strictSame(new Admission({ maxRequests: 1 }).bounds, { ...ADMISSION_DEFAULTS, maxRequests: 1 })
})

await t.test('whatever tickets do, closing them all gives everything back', async (t) => {
  const step = fc.record({
    ticket: fc.nat(4),
    act: fc.constantFrom('charge', 'release', 'close'),
    bytes: fc.nat(50),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const admission = new Admission({ maxRequests: 5, maxBytes: 200 })
      const tickets = Array.from({ length: 5 }, () => admission.admit())
      for (const { ticket: at, act, bytes } of steps) {
        const ticket = tickets[at]
        if (act === 'close') ticket?.close()
        else if (act === 'release') ticket?.release(bytes)
        else if (ticket !== undefined) charge(ticket, bytes)
        t.ok(admission.bytes >= 0 && admission.bytes <= 200)
      }
      for (const ticket of tickets) ticket.close()
      t.equal(admission.requests, 0)
      t.equal(admission.bytes, 0)
    }),
    { numRuns: 100 },
  )
})

function charge(ticket: AdmissionTicket, bytes: number): void {
  try {
    ticket.charge(bytes)
  } catch {
    // Refused: nothing was counted, which the sums above check.
  }
}
