import * as fc from 'fast-check'
import t from 'tap'
import {
  APART,
  monotonicNs,
  planRecord,
  readRecords,
  SLOT_HEADER_BYTES,
  SlotPool,
  slotBytes,
  writeRecords,
} from './slot.ts'

const INLINE_BYTES = 4096

/** A tensor whose parts are filled with its index. */
const tensor = fc
  .record({
    index: fc.nat(255),
    dims: fc.array(fc.nat(2 ** 31), { maxLength: 8 }),
    sizes: fc.array(fc.nat(5000), { maxLength: 3 }),
  })
  .map(({ index, dims, sizes }) => ({
    index,
    dims,
    parts: sizes.map((size) => ({ data: new Uint8Array(size).fill(index) })),
  }))
const tensors = fc.array(tensor, { maxLength: 6 })
const values = fc.array(fc.nat(), { maxLength: 6 })
const inlineBytes = fc.constantFrom(INLINE_BYTES, Number.POSITIVE_INFINITY)

await t.test('the records that are written into a slot are read from it', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(tensors, values, inlineBytes), { maxLength: 5 }), (records) => {
      const planned = records.map((args) => planRecord(...args))
      const slot = new ArrayBuffer(slotBytes(planned))
      writeRecords(slot, planned)
      const read = readRecords(slot)
      let begin = SLOT_HEADER_BYTES
      const want = planned.map((plan) => {
        const from = begin
        begin += plan.size
        const placed = plan.tensors.map(({ byteOffset, ...rest }) => ({
          ...rest,
          parts: [],
          byteOffset: byteOffset === APART ? APART : byteOffset + from,
        }))
        return { ...plan, tensors: placed }
      })
      t.strictSame(read, want)
      for (const { index, byteOffset, byteLength } of read.flatMap((record) => record.tensors)) {
        if (byteOffset === APART) continue
        t.ok(new Uint8Array(slot, byteOffset, byteLength).every((byte) => byte === index))
      }
    }),
    { numRuns: 50 },
  )
})

function holds(
  placed: readonly { readonly byteOffset: number; readonly byteLength: number }[],
  recordBytes: number,
): boolean {
  let end = 0
  for (const { byteOffset, byteLength } of placed) {
    if (byteOffset === APART) continue
    if (byteOffset % 64 !== 0 || byteOffset < end) return false
    end = byteOffset + byteLength
  }
  return end <= recordBytes && recordBytes % 64 === 0
}

await t.test('tensors are aligned, do not overlap, and end within their record', async (t) => {
  fc.assert(
    fc.property(tensors, values, inlineBytes, (...args) => {
      const { tensors: placed, size } = planRecord(...args)
      return holds(placed, size)
    }),
  )
  t.pass('held for every plan tried')
})

await t.test('only outputs that are small travel inside the slot', async (t) => {
  const outputs = [INLINE_BYTES, INLINE_BYTES + 1].map((size) => ({
    index: 0,
    dims: [],
    parts: [{ data: new Uint8Array(size) }],
  }))
  const plan = planRecord(outputs, [], INLINE_BYTES)
  t.same(
    plan.tensors.map(({ byteOffset }) => byteOffset === APART),
    [false, true],
  )
})

await t.test('a record that is cut short is a bug, not a tensor', async (t) => {
  const slot = new ArrayBuffer(SLOT_HEADER_BYTES)
  new Float64Array(slot)[0] = 1
  t.throws(() => readRecords(slot), { message: /^bug: a slot record/ })
})

await t.test('a pool reuses slots and keeps no more than its bound', async (t) => {
  const pool = new SlotPool(20_000)
  const slot = pool.take(100)
  t.equal(slot.byteLength, 4096)
  pool.give(slot)
  t.equal(pool.take(4000), slot)
  t.equal(pool.take(5000).byteLength, 8192)
  t.equal(pool.take(2 ** 20 + 1).byteLength, 2 * 2 ** 20)
  const larger = [new ArrayBuffer(8192), new ArrayBuffer(8192)]
  pool.give(slot)
  for (const one of larger) pool.give(one)
  t.not(pool.take(4096), slot, 'the size that came last the longest ago made place')
  t.equal(pool.take(8192), larger[1])
  t.equal(pool.take(8192), larger[0])
  pool.give(slot)
  t.equal(pool.take(4096), slot, 'what was taken counts no more')
  for (const [size, what] of [
    [5000, 'a buffer of another size'],
    [32_768, 'a slot above the bound'],
  ] as const) {
    pool.give(slot)
    const odd = new ArrayBuffer(size)
    pool.give(odd)
    t.not(pool.take(size), odd, `${what} is dropped`)
    t.equal(pool.take(4096), slot, `${what} takes no place`)
  }
})

await t.test('sizes that are not used any more make place for those that are', async (t) => {
  const pool = new SlotPool(1024 * 1024)
  for (let size = 4096; size <= 1024 * 1024; size *= 2) pool.give(new ArrayBuffer(size))
  const slots = [1, 2].map(() => pool.take(512 * 1024))
  for (const slot of slots) pool.give(slot)
  t.same(new Set([1, 2].map(() => pool.take(512 * 1024))), new Set(slots))
})

await t.test('time does not run backwards', async (t) => {
  const before = monotonicNs()
  t.ok(monotonicNs() >= before)
})
