import { createHash } from 'node:crypto'
import { DATATYPES, type Datatype, type Parameter } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { decodeEntry, encodeEntry } from './redis-entry.ts'
import type { CachedResponse } from './response-cache.ts'

const sized = Object.entries(DATATYPES).flatMap(([name, { itemSize }]) =>
  itemSize === null ? [] : [[name as Datatype, itemSize] as const],
)

const output = fc
  .tuple(fc.string(), fc.constantFrom(...sized), fc.array(fc.nat(3), { maxLength: 3 }), fc.nat(255))
  .map(([name, [datatype, itemSize], shape, fill]) => {
    const elements = shape.reduce((product, extent) => product * extent, 1)
    return { name, datatype, shape, data: new Uint8Array(elements * itemSize).fill(fill) }
  })
const text = fc
  .uint8Array()
  .map((data) => ({ name: 'text', datatype: 'BYTES' as const, shape: [1], data }))
const parameter: fc.Arbitrary<Parameter> = fc.oneof(
  fc.boolean().map((value) => ({ kind: 'bool' as const, value })),
  fc.string().map((value) => ({ kind: 'string' as const, value })),
  fc.oneof(fc.double(), fc.constant(-0)).map((value) => ({ kind: 'double' as const, value })),
  fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n).map((value) => ({ kind: 'int64' as const, value })),
  fc.bigInt(0n, 2n ** 64n - 1n).map((value) => ({ kind: 'uint64' as const, value })),
)
const response: fc.Arbitrary<CachedResponse> = fc
  .tuple(
    fc.array(fc.oneof(output, text), { maxLength: 4 }),
    fc.array(fc.tuple(fc.string(), parameter)),
  )
  .map(([outputs, parameters]) => ({ outputs, parameters: new Map(parameters) }))

await t.test('what is kept comes back, for its key alone', async () => {
  fc.assert(
    fc.property(response, fc.string(), fc.string(), (kept, key, other) => {
      const entry = encodeEntry(key, kept)
      t.strictSame(decodeEntry(key, entry), kept)
      if (other !== key) t.equal(decodeEntry(other, entry), undefined)
    }),
  )
})

await t.test('a changed or cut entry is none', async () => {
  fc.assert(
    fc.property(response, fc.nat(), fc.integer({ min: 1, max: 255 }), (kept, at, change) => {
      const entry = encodeEntry('k', kept)
      const place = at % entry.byteLength
      t.equal(decodeEntry('k', entry.subarray(0, place)), undefined)
      entry[place] = (entry[place] ?? 0) ^ change
      t.equal(decodeEntry('k', entry), undefined)
    }),
  )
})

/** Somebody who knows the format may have written it, with the digest that belongs to it. */
function forge(length: number, head: string, data: Uint8Array): Buffer {
  const lengthBytes = Buffer.alloc(4)
  lengthBytes.writeUInt32LE(length)
  const rest = Buffer.concat([lengthBytes, Buffer.from(head), data])
  return Buffer.concat([createHash('sha256').update('k').update(rest).digest(), rest])
}

await t.test('a forged entry is read whole or not at all', async () => {
  const extent = fc.oneof(fc.nat(3), fc.constantFrom(2 ** 53, -1, 0.5, Number.MAX_SAFE_INTEGER))
  const forgedOutput = fc.record({
    name: fc.oneof(fc.string(), fc.constant(7)),
    datatype: fc.constantFrom('FP32', 'BYTES', 'UINT8', 'nosuch'),
    shape: fc.array(extent, { maxLength: 3 }),
    bytes: fc.oneof(fc.nat(64), fc.constantFrom(2 ** 40, -1)),
  })
  const forgedParameter = fc.tuple(
    fc.string(),
    fc.constantFrom('bool', 'int64', 'uint64', 'double', 'nosuch'),
    fc.oneof(fc.string(), fc.constantFrom('1', '-1', '1e400', '9'.repeat(30))),
  )
  const head = fc.oneof(
    fc.record({
      outputs: fc.array(forgedOutput, { maxLength: 3 }),
      parameters: fc.array(forgedParameter, { maxLength: 2 }),
    }),
    fc.json(),
  )
  fc.assert(
    fc.property(head, fc.uint8Array(), fc.option(fc.nat(2 ** 32 - 1)), (value, data, length) => {
      const json = typeof value === 'string' ? value : JSON.stringify(value)
      const found = decodeEntry('k', forge(length ?? Buffer.byteLength(json), json, data))
      const bytes = found?.outputs.reduce((sum, one) => sum + one.data.byteLength, 0) ?? 0
      t.ok(bytes <= data.byteLength)
      for (const { kind, value: number } of found?.parameters.values() ?? []) {
        if (kind === 'int64') t.equal(BigInt.asIntN(64, number), number)
        if (kind === 'uint64') t.equal(BigInt.asUintN(64, number), number)
      }
    }),
  )
})
