import { deepStrictEqual, ok } from 'node:assert/strict'
import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { decodeChunk, encodeChunk } from './chunk-codec.ts'
import { CHUNK_BYTES, WHOLE_CHUNK_BYTES } from './limits.ts'
import { damaged, memberId, payload } from './testing/message-arbitraries.ts'

const chunk = fc
  .record({ from: memberId, transfer: fc.maxSafeNat(), before: fc.nat(), after: fc.nat(), payload })
  .map(({ from, transfer, before, after, payload }) => {
    const size = payload.byteLength
    const total = size === 0 ? 0 : before + size + after
    return { header: { from, transfer, offset: size === 0 ? 0 : before, total }, payload }
  })

/** The reason and field with which bytes are refused. */
function refusal(bytes: Uint8Array): string {
  try {
    decodeChunk(bytes)
  } catch (error) {
    ok(error instanceof ServeError, String(error))
    return `${error.reason} ${error.details.field}`
  }
  return 'none'
}

function changed(bytes: Uint8Array, at: number, ...to: readonly number[]): Uint8Array {
  const copy = new Uint8Array(bytes)
  copy.set(to, at)
  return copy
}

const GOOD = encodeChunk({ from: 'r', transfer: 2, offset: 3, total: 10 }, Uint8Array.of(1, 2))

await t.test('any chunk comes out as it went in', async (t) => {
  const property = fc.property(chunk, ({ header, payload }) => {
    const { bytes, ...got } = decodeChunk(encodeChunk(header, payload))
    deepStrictEqual(got, header)
    deepStrictEqual(new Uint8Array(bytes), payload)
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
})

await t.test('the payload is an aligned view', async (t) => {
  for (const from of ['r', 'r'.repeat(8), 'r'.repeat(255)]) {
    const bytes = encodeChunk({ from, transfer: 1, offset: 0, total: 3 }, Uint8Array.of(1, 2, 3))
    const got = decodeChunk(bytes)
    t.equal(got.bytes.buffer, bytes.buffer)
    t.equal((got.bytes.byteOffset - bytes.byteOffset) % 8, 0)
  }
})

await t.test('a whole chunk passes the default limit of a nats-server', async (t) => {
  for (const size of [CHUNK_BYTES, WHOLE_CHUNK_BYTES]) {
    const header = { from: 'r'.repeat(255), transfer: 1, offset: 0, total: size }
    t.ok(encodeChunk(header, new Uint8Array(size)).byteLength <= 1024 * 1024)
  }
})

await t.test('damaged and random chunks are read or refused with a typed error', async (t) => {
  const good = chunk.map(({ header, payload }) => encodeChunk(header, payload))
  const property = fc.property(fc.oneof(damaged(good), payload), (bytes) => {
    if (refusal(bytes) !== 'none') return
    const { bytes: data, ...header } = decodeChunk(bytes)
    ok(header.offset + data.byteLength <= header.total)
    deepStrictEqual(decodeChunk(encodeChunk(header, data)).from, header.from)
  })
  t.doesNotThrow(() => fc.assert(property, { numRuns: 500 }))
})

await t.test('each field that is wrong is named', async (t) => {
  const cases: readonly (readonly [string, Uint8Array])[] = [
    ['MALFORMED_MESSAGE prefix', GOOD.subarray(0, 31)],
    ['MALFORMED_MESSAGE magic', changed(GOOD, 2, 0x4d)],
    ['UNSUPPORTED version', changed(GOOD, 3, 2)],
    ['MALFORMED_MESSAGE prefix', changed(GOOD, 6, 1)],
    ['MALFORMED_MESSAGE from', changed(GOOD, 4, 0)],
    ['MALFORMED_MESSAGE from', changed(GOOD, 4, 255)],
    ['MALFORMED_MESSAGE from', changed(GOOD, 32, 0xff)],
    ['MALFORMED_MESSAGE transfer', changed(GOOD, 15, 1)],
    ['MALFORMED_MESSAGE offset', changed(GOOD, 23, 1)],
    ['MALFORMED_MESSAGE total', changed(GOOD, 31, 1)],
    ['MALFORMED_MESSAGE offset', changed(GOOD, 16, 9)],
    ['MALFORMED_MESSAGE offset', GOOD.subarray(0, GOOD.byteLength - 2)],
  ]
  for (const [expected, bytes] of cases) t.equal(refusal(bytes), expected)
})

await t.test('a chunk that cannot be is not sent', async (t) => {
  const bytes = Uint8Array.of(1, 2)
  const cases = [
    { from: '', transfer: 1, offset: 0, total: 2 },
    { from: 'r'.repeat(256), transfer: 1, offset: 0, total: 2 },
    { from: 'r', transfer: 1, offset: 1, total: 2 },
  ]
  for (const header of cases) {
    t.throws(() => encodeChunk(header, bytes), { reason: 'INTERNAL', message: 'bug: ' })
  }
  const empty = { from: 'r', transfer: 1, offset: 0, total: 2 }
  t.throws(() => encodeChunk(empty, new Uint8Array(0)), { reason: 'INTERNAL', message: 'bug: ' })
})
