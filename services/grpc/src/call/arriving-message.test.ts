import { decodeInferRequest, encodeInferRequest } from '@tutti/protocol'
import { PoisonedMemory } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t from 'tap'
import { ArrivingMessage } from './arriving-message.ts'

const APART_BYTES = 65_536

/** Gives a message in pieces, each of which is overwritten before the next one. */
function arrive(bytes: Buffer, places: readonly number[], memory: PoisonedMemory): ArrivingMessage {
  const arriving = new ArrivingMessage(bytes.byteLength, memory)
  const cuts = places.map((place) => place % (bytes.byteLength + 1)).toSorted((a, b) => a - b)
  for (const [i, from] of [0, ...cuts].entries()) {
    const to = cuts[i] ?? bytes.byteLength
    // Before it, and behind the last one, stands what is not of the message.
    const behind = to === bytes.byteLength ? Buffer.from([3, 4, 5]) : Buffer.alloc(0)
    const piece = Buffer.concat([Buffer.from([1, 2]), bytes.subarray(from, to), behind])
    const rest = arriving.add(piece, 2)
    if (rest !== 2 + to - from) throw new Error(`${rest} bytes were read, of ${to - from}`)
    piece.fill(0xaa)
  }
  return arriving
}

/** The message as it was sent: raw contents in their places. */
function decode({ bytes, apart }: ArrivingMessage): unknown {
  return plain(apart?.decode(bytes) ?? decodeInferRequest(bytes))
}

function plain({ rawInputContents, ...rest }: ReturnType<typeof decodeInferRequest>): unknown {
  return { ...rest, raw: rawInputContents.map((one) => Buffer.from(one)) }
}

const size = fc.oneof(
  fc.nat({ max: 300 }),
  fc.integer({ min: APART_BYTES - 2, max: APART_BYTES + 2 }),
  fc.integer({ min: APART_BYTES, max: 300_000 }),
)
const sizes = fc.array(size, { maxLength: 5 })
const places = fc.array(fc.nat(), { maxLength: 30 })

function request(sizes: readonly number[]): Buffer {
  const inputs = sizes.map((length, i) => {
    const data = new Uint8Array(length).fill(i + 1)
    if (length > 0) data[0] = length % 251
    return { name: `x${i}`, datatype: 'UINT8' as const, shape: [length], data }
  })
  return encodeInferRequest({ modelName: 'm', id: 'i'.repeat(100), inputs })
}

await t.test('a request is the same, however it is cut; its large tensors are apart', async (t) => {
  const memory = new PoisonedMemory()
  fc.assert(
    fc.property(sizes, places, (lengths, cuts) => {
      const bytes = request(lengths)
      const arriving = arrive(bytes, cuts, memory)
      t.ok(arriving.isWhole)
      t.same(decode(arriving), plain(decodeInferRequest(bytes)))
      const large = lengths.filter((length) => length >= APART_BYTES)
      t.same(arriving.apart?.tensors.map((one) => one.bytes.byteLength) ?? [], large)
      t.equal(memory.open, large.length)
      t.equal(
        arriving.bytes.byteLength,
        large.reduce((left, one) => left - one, bytes.byteLength),
      )
      arriving.apart?.end()
      t.equal(memory.open, 0)
    }),
  )
})

await t.test('a tensor that finds no memory stays in the message', async (t) => {
  fc.assert(
    fc.property(sizes, places, fc.array(fc.boolean()), (lengths, cuts, isFull) => {
      let asked = 0
      const memory = new PoisonedMemory((bytes) =>
        isFull[asked++] === true ? undefined : { bytes: new Uint8Array(bytes), free: () => {} },
      )
      const bytes = request(lengths)
      t.same(decode(arrive(bytes, cuts, memory)), plain(decodeInferRequest(bytes)))
    }),
  )
})

const varint = fc.array(fc.integer({ min: 0x80, max: 0xff }), { maxLength: 11 })
const field = fc.oneof(
  fc.uint8Array({ maxLength: 12 }),
  // Padded tags and lengths, unknown fields of each wire type, groups among them.
  fc.tuple(varint, fc.nat({ max: 0x7f })).map(([more, last]) => Uint8Array.from([...more, last])),
  fc.constantFrom(
    Uint8Array.from([0xba, 0x80, 0x00, 2, 7, 7]),
    Uint8Array.from([0x79, 1, 2, 3, 4, 5, 6, 7, 8]),
    Uint8Array.from([0x7d, 1, 2, 3, 4]),
    Uint8Array.from([0x78, 0xff, 0x01]),
    Uint8Array.from([0x7b, 0x7c]),
  ),
  size.map((length) => request([length])),
)

/** A field of raw contents whose tag has a bit beyond 64, which the decoder drops. Its bytes look like a field of raw contents. */
const LONG_TAG = [
  Uint8Array.from([0xba, ...Array<number>(8).fill(0x80), 0x02, 0x84, 0x80, 0x04]),
  Uint8Array.from([0x3a, 0x80, 0x80, 0x04, ...Array<number>(APART_BYTES).fill(7)]),
]

/** Returns what `act` returns, or the reason of its error. */
function outcome(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return { reason: error instanceof Error && 'reason' in error ? error.reason : error }
  }
}

await t.test('any other bytes are decoded, or refused, as if they had come whole', async (t) => {
  const memory = new PoisonedMemory()
  fc.assert(
    fc.property(fc.array(field, { maxLength: 6 }), places, fc.nat(), (fields, cuts, end) => {
      const all = Buffer.concat(fields)
      const bytes = all.subarray(0, end % 3 === 0 ? end % (all.byteLength + 1) : undefined)
      const arriving = arrive(bytes, cuts, memory)
      t.same(
        outcome(() => decode(arriving)),
        outcome(() => plain(decodeInferRequest(bytes))),
      )
      arriving.apart?.end()
      t.equal(memory.open, 0)
    }),
    { numRuns: 500, examples: [[LONG_TAG, [], 1]] },
  )
})

await t.test('a message that is compressed, or no request, is left as it is', async (t) => {
  const bytes = request([100_000])
  const arriving = new ArrivingMessage(bytes.byteLength)
  arriving.add(bytes, 0)
  t.ok(arriving.isWhole && arriving.bytes.equals(bytes))
  t.equal(arriving.apart, undefined)
})
