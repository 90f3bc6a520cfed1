import * as fc from 'fast-check'
import t from 'tap'
import { FRAME_HEADER_BYTES, MessageFrames } from './message-frames.ts'

function frame(length: number, body = 0xff): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + length, body)
  bytes[0] = 0
  bytes.writeUInt32BE(length, 1)
  return bytes
}

/** Cuts bytes at places; each modulo what there is. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = places.map((place) => place % bytes.byteLength).toSorted((a, b) => a - b)
  return [0, ...sorted].map((from, i) => bytes.subarray(from, sorted[i] ?? bytes.byteLength))
}

await t.test('however a stream is cut, each message keeps its length and its turn', (t) => {
  const lengths = fc.array(fc.nat(300), { minLength: 1, maxLength: 20 })
  const places = fc.array(fc.nat(), { maxLength: 30 })
  fc.assert(
    fc.property(lengths, places, (sizes, cuts) => {
      const frames = new MessageFrames()
      const whole = Buffer.concat(sizes.map((size) => frame(size)))
      const claims = cut(whole, cuts).map((piece) => frames.add(piece))
      t.equal(Math.max(...claims), Math.max(...sizes))
      t.strictSame(
        sizes.map(() => frames.next()),
        sizes.map((size) => FRAME_HEADER_BYTES + size),
      )
      t.equal(frames.next(), 0)
    }),
  )
  t.end()
})

await t.test('a length is told as soon as its header is there, and not again', (t) => {
  const frames = new MessageFrames()
  const header = Buffer.from([0, 0xff, 0xff, 0xff, 0xff])
  t.equal(frames.add(header.subarray(0, 3)), -1)
  t.equal(frames.add(header.subarray(3)), 2 ** 32 - 1)
  t.equal(frames.add(Buffer.alloc(100, 0xff)), -1)
  t.equal(frames.next(), FRAME_HEADER_BYTES + 2 ** 32 - 1)
  t.end()
})
