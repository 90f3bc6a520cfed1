import * as fc from 'fast-check'
import t from 'tap'
import { FRAME_HEADER_BYTES, MessageReader } from './message-reader.ts'
import { toFrame } from './method.ts'

const MAX_BYTES = 10_000

/** Cuts bytes at places; each modulo what there is. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = places.map((place) => place % (bytes.byteLength + 1)).toSorted((a, b) => a - b)
  return [0, ...sorted].map((from, i) => bytes.subarray(from, sorted[i] ?? bytes.byteLength))
}

function readAll(reader: MessageReader, pieces: readonly Buffer[]): Buffer[] {
  const frames: Buffer[] = []
  for (const piece of pieces) {
    reader.add(piece)
    for (let frame = reader.next(); frame !== undefined; frame = reader.next()) frames.push(frame)
  }
  return frames
}

const messages = fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 20 })
const places = fc.array(fc.nat(), { maxLength: 30 })

await t.test('messages are the same, however their stream is cut', async (t) => {
  fc.assert(
    fc.property(messages, places, (sent, cuts) => {
      const reader = new MessageReader(MAX_BYTES)
      const frames = sent.map(toFrame)
      t.strictSame(readAll(reader, cut(Buffer.concat(frames), cuts)), frames)
      t.equal(reader.pendingBytes, 0)
    }),
  )
})

await t.test('pieces may come before earlier frames are taken', async (t) => {
  fc.assert(
    fc.property(messages, places, (sent, cuts) => {
      const reader = new MessageReader(MAX_BYTES)
      const frames = sent.map(toFrame)
      for (const piece of cut(Buffer.concat(frames), cuts)) reader.add(piece)
      t.strictSame(readAll(reader, [Buffer.alloc(0)]), frames)
    }),
  )
})

await t.test('a message of many small pieces costs no more for each than a large one', (t) => {
  // With a time that grows with the square of their number this takes minutes.
  const message = Buffer.alloc(400_000, 7)
  const frame = toFrame(message)
  const pieces = Array.from(frame, (_, at) => frame.subarray(at, at + 1))
  t.same(readAll(new MessageReader(2 ** 20), pieces), [frame])
  t.end()
})

await t.test('large messages are the same, taken at once or late', async (t) => {
  const frames = [3_000_000, 10, 2_000_000, 1_500_000].map((size, i) =>
    toFrame(Buffer.alloc(size, i + 1)),
  )
  const bytes = Buffer.concat(frames)
  const places = Array.from({ length: 65 }, (_, i) => i * 100_003)
  const pieces = cut(bytes, places)
  const reader = new MessageReader(2 ** 22)
  t.ok(readAll(reader, pieces).every((frame, i) => frame.equals(frames[i] ?? Buffer.alloc(0))))
  t.equal(reader.pendingBytes, 0)
  const [first = Buffer.alloc(0), ...rest] = pieces.slice(1)
  t.same(readAll(reader, [first]), [], 'its length is known')
  for (const piece of rest) reader.add(piece)
  const late = readAll(reader, [Buffer.alloc(0)])
  t.ok(late.length === frames.length && late.every((frame, i) => frame.equals(frames[i] ?? first)))
})

await t.test('a frame that comes within one piece is not copied', async (t) => {
  const both = Buffer.concat([toFrame(Buffer.from('one')), toFrame(Buffer.from('two'))])
  const piece = Buffer.from(Uint8Array.from(both).buffer)
  const [one, two] = readAll(new MessageReader(MAX_BYTES), [piece])
  t.equal(one?.buffer, piece.buffer)
  t.equal(two?.buffer, piece.buffer)
  t.equal(two?.byteOffset, piece.byteOffset + 8)
})

await t.test('a length over the bound is refused as soon as its header is there', async (t) => {
  const header = Buffer.from([0, 0xff, 0xff, 0xff, 0xff])
  for (const pieces of [[header], [header.subarray(0, 3), header.subarray(3)]]) {
    t.throws(() => readAll(new MessageReader(MAX_BYTES), pieces), {
      reason: 'MESSAGE_TOO_LARGE',
      message: 'message has 4294967295 bytes, want at most 10000',
    })
  }
})

await t.test('a length that is only claimed takes no memory', async (t) => {
  const size = 2 ** 31 - 1
  const reader = new MessageReader(size)
  const header = Buffer.alloc(FRAME_HEADER_BYTES)
  header.writeUInt32BE(size, 1)
  const before = process.memoryUsage().arrayBuffers
  t.same(readAll(reader, [header, Buffer.alloc(1000)]), [])
  t.ok(process.memoryUsage().arrayBuffers - before < 2 ** 20)
  t.equal(reader.pendingBytes, FRAME_HEADER_BYTES + 1000)
})

await t.test('what has come of a frame is told', async (t) => {
  const reader = new MessageReader(MAX_BYTES)
  const frame = toFrame(Buffer.from('message'))
  readAll(reader, [Buffer.concat([frame, frame.subarray(0, 7)])])
  t.equal(reader.pendingBytes, 7)
  t.strictSame(readAll(reader, [frame.subarray(7)]), [frame])
})

await t.test('a small message keeps little of the read that it came with', async (t) => {
  const reader = new MessageReader(MAX_BYTES)
  const message = toFrame(Buffer.alloc(100, 7))
  const read = Buffer.allocUnsafeSlow(65_536)
  read.set(message)
  const frames = readAll(reader, [read.subarray(0, 60), read.subarray(60, message.byteLength)])
  read.fill(0xee)
  t.strictSame(frames, [message])
})
