import * as fc from 'fast-check'
import t from 'tap'
import {
  APART,
  monotonicNs,
  planOutputs,
  planRequest,
  readReplies,
  readRequests,
  SLOT_HEADER_BYTES,
  SlotWriter,
} from './slot.ts'
import { SlotPool } from './slot-pool.ts'

const INLINE_BYTES = 4096

const size = fc.record({
  index: fc.nat(1000),
  dims: fc.array(fc.nat(2 ** 31), { maxLength: 8 }),
  byteLength: fc.nat(10_000),
})
const sizes = fc.array(size, { maxLength: 6 })
const times = fc.record({
  beginNs: fc.nat(),
  inferStartNs: fc.nat(),
  inferEndNs: fc.nat(),
  endNs: fc.nat(),
})

function slotFor(planned: readonly { readonly size: number }[]): ArrayBuffer {
  return new ArrayBuffer(planned.reduce((sum, plan) => sum + plan.size, SLOT_HEADER_BYTES))
}

await t.test('the requests that are written into a slot are read from it', async (t) => {
  const request = fc.tuple(sizes, fc.array(fc.nat(1000), { maxLength: 6 }))
  fc.assert(
    fc.property(fc.array(request, { maxLength: 5 }), (requests) => {
      const planned = requests.map(([inputs, outputs]) => planRequest(inputs, outputs))
      const slot = slotFor(planned)
      const writer = new SlotWriter(slot)
      const begins = planned.map((plan) => writer.addRequest(plan))
      const want = planned.map(({ record }, i) => ({
        inputs: record.inputs.map((input) => ({
          ...input,
          byteOffset: input.byteOffset + (begins[i] ?? 0),
        })),
        outputs: record.outputs,
      }))
      t.strictSame(readRequests(slot), want)
    }),
    { numRuns: 50 },
  )
})

await t.test('the replies that are written into a slot are read from it', async (t) => {
  const reply = fc.tuple(times, fc.option(sizes, { nil: undefined }))
  fc.assert(
    fc.property(fc.array(reply, { maxLength: 5 }), (replies) => {
      const planned = replies.map(([, outputs]) => planOutputs(outputs, INLINE_BYTES))
      const slot = slotFor(planned)
      const writer = new SlotWriter(slot)
      const want = replies.map(([written, outputs], i) => {
        const plan = planned[i] ?? planOutputs(outputs, INLINE_BYTES)
        const begin = writer.addReply(written, plan)
        const placed = plan.record?.map((output) =>
          output.byteOffset === APART
            ? output
            : { ...output, byteOffset: output.byteOffset + begin },
        )
        return { ...written, outputs: placed }
      })
      t.strictSame(readReplies(slot), want)
    }),
    { numRuns: 50 },
  )
})

function holds(
  tensors: readonly { readonly byteOffset: number; readonly byteLength: number }[],
  recordBytes: number,
): boolean {
  let end = 0
  for (const { byteOffset, byteLength } of tensors) {
    if (byteOffset === APART) continue
    if (byteOffset % 64 !== 0 || byteOffset < end) return false
    end = byteOffset + byteLength
  }
  return end <= recordBytes && recordBytes % 64 === 0
}

await t.test('tensors are aligned, do not overlap, and end within their record', async (t) => {
  fc.assert(
    fc.property(sizes, (inputs) => {
      const { record, size: recordBytes } = planRequest(inputs, [0])
      return holds(record.inputs, recordBytes)
    }),
  )
  fc.assert(
    fc.property(sizes, (outputs) => {
      const { record, size: recordBytes } = planOutputs(outputs, INLINE_BYTES)
      return holds(record ?? [], recordBytes)
    }),
  )
  t.pass('held for every plan tried')
})

await t.test('only outputs that are small travel inside the slot', async (t) => {
  const output = { index: 0, dims: [], byteLength: INLINE_BYTES }
  const { record } = planOutputs(
    [output, { ...output, byteLength: INLINE_BYTES + 1 }],
    INLINE_BYTES,
  )
  t.same(
    record?.map(({ byteOffset }) => byteOffset === APART),
    [false, true],
  )
})

await t.test('a record that is cut short is a bug, not a tensor', async (t) => {
  const slot = new ArrayBuffer(SLOT_HEADER_BYTES)
  new Float64Array(slot)[0] = 1
  t.throws(() => readRequests(slot), { message: /^bug: a slot record/ })
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
