import * as fc from 'fast-check'
import t from 'tap'
import {
  monotonicNs,
  planRequest,
  readReply,
  readRequest,
  replyHeaderBytes,
  writeReply,
  writeRequest,
} from './slot.ts'
import { SlotPool } from './slot-pool.ts'

const size = fc.record({
  index: fc.nat(1000),
  dims: fc.array(fc.nat(2 ** 31), { maxLength: 8 }),
  byteLength: fc.nat(10_000),
})

await t.test('what is written into a slot is read from it', async (t) => {
  fc.assert(
    fc.property(fc.array(size, { maxLength: 6 }), fc.array(fc.nat(1000)), (inputs, outputs) => {
      const planned = planRequest(inputs, outputs)
      const slot = new ArrayBuffer(planned.size)
      writeRequest(slot, planned.request)
      t.strictSame(readRequest(slot), planned.request)
    }),
    { numRuns: 50 },
  )
  fc.assert(
    fc.property(fc.array(size, { maxLength: 6 }), fc.nat(), (tensors, inferStartNs) => {
      const outputs = tensors.map((tensor) => ({ ...tensor, byteOffset: -1 }))
      const reply = { inferStartNs, inferEndNs: inferStartNs + 1, outputs }
      const slot = new ArrayBuffer(replyHeaderBytes(outputs))
      writeReply(slot, reply)
      t.strictSame(readReply(slot), reply)
    }),
    { numRuns: 50 },
  )
})

await t.test('tensors are aligned, do not overlap, and end within the slot', async (t) => {
  fc.assert(
    fc.property(fc.array(size, { maxLength: 6 }), (inputs) => {
      const { request, size: slotBytes } = planRequest(inputs, [0])
      let end = 0
      for (const { byteOffset, byteLength } of request.inputs) {
        if (byteOffset % 64 !== 0 || byteOffset < end) return false
        end = byteOffset + byteLength
      }
      return end <= slotBytes
    }),
  )
  t.pass('held for every plan tried')
})

await t.test('a header that is cut short is a bug, not a tensor', async (t) => {
  t.throws(() => readRequest(new ArrayBuffer(4)), { message: /^bug: a slot header/ })
})

await t.test('a pool reuses slots and keeps no more than its bound', async (t) => {
  const pool = new SlotPool(10_000)
  const slot = pool.take(100)
  t.equal(slot.byteLength, 4096)
  pool.give(slot)
  t.equal(pool.bytes, 4096)
  t.equal(pool.take(4000), slot)
  t.equal(pool.bytes, 0)
  t.equal(pool.take(5000).byteLength, 8192)
  t.equal(pool.take(2 ** 20 + 1).byteLength, 2 * 2 ** 20)
  pool.give(slot)
  pool.give(new ArrayBuffer(8192))
  t.equal(pool.bytes, 4096, 'a slot over the bound is dropped')
  pool.give(new ArrayBuffer(5000))
  t.equal(pool.bytes, 4096, 'a buffer of another size is dropped')
})

await t.test('time does not run backwards', async (t) => {
  const before = monotonicNs()
  t.ok(monotonicNs() >= before)
})
