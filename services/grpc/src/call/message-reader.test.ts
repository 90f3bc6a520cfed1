import * as fc from 'fast-check'
import t from 'tap'
import { toFrame } from '../methods/method.ts'
import { FRAME_HEADER_BYTES, type FramedMessage, MessageReader } from './message-reader.ts'

const MAX_BYTES = 10_000

/** Cuts bytes at places; each modulo what there is. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = places.map((place) => place % (bytes.byteLength + 1)).toSorted((a, b) => a - b)
  return [0, ...sorted].map((from, i) => bytes.subarray(from, sorted[i] ?? bytes.byteLength))
}

/** Gives each piece as a read that is overwritten at once by the next one. @returns the messages with their headers. */
function readAll(reader: MessageReader, pieces: readonly Buffer[], mayTake = true): Buffer[] {
  const frames: Buffer[] = []
  for (const piece of pieces) {
    const read = Buffer.from(piece)
    reader.add(read)
    if (mayTake) frames.push(...takeAll(reader).map(({ message }) => toFrame(message)))
    reader.keep()
    read.fill(0xaa)
  }
  return frames
}

function takeAll(reader: MessageReader): FramedMessage[] {
  const taken: FramedMessage[] = []
  for (let it = reader.next(); it !== undefined; it = reader.next()) taken.push(it)
  return taken
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
      readAll(reader, cut(Buffer.concat(frames), cuts), false)
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
  readAll(reader, rest, false)
  const late = readAll(reader, [Buffer.alloc(0)])
  t.ok(late.length === frames.length && late.every((frame, i) => frame.equals(frames[i] ?? first)))
})

await t.test('a length over the bound is refused as soon as its header is there', async (t) => {
  const header = Buffer.from([0, 0xff, 0xff, 0xff, 0xff])
  for (const pieces of [[header], [header.subarray(0, 3), header.subarray(3)]]) {
    t.throws(() => readAll(new MessageReader(MAX_BYTES), pieces), {
      reason: 'MESSAGE_TOO_LARGE',
      message: 'message has 4294967295 bytes, want at most 10000 (--grpc-max-message-size)',
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
