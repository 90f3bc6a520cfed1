import * as fc from 'fast-check'
import t from 'tap'
import { UnaryMessage } from './unary-message.ts'

function frame(message: Uint8Array, flags = 0): Buffer {
  const header = Buffer.alloc(5)
  header.writeUInt8(flags)
  header.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([header, message])
}

function read(pieces: readonly Buffer[]): Buffer {
  const message = new UnaryMessage()
  for (const piece of pieces) message.add(piece)
  return message.end()
}

function cut(bytes: Buffer, sizes: readonly number[]): Buffer[] {
  const pieces: Buffer[] = []
  let at = 0
  for (const size of sizes) {
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return [...pieces, bytes.subarray(at)]
}

await t.test('a message is the same, however it comes in pieces', async (t) => {
  const sizes = fc.array(fc.nat(300), { maxLength: 40 })
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 3000 }), sizes, (message, pieces) => {
      t.ok(read(cut(frame(message), pieces)).equals(message))
    }),
  )
})

await t.test('a message that comes whole is not copied', async (t) => {
  const whole = frame(Buffer.from('whole'))
  t.equal(read([whole]).buffer, whole.buffer)
})

await t.test('what is not exactly one uncompressed message is malformed', async (t) => {
  const good = frame(Buffer.from('message'))
  const far = Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1])
  const cases: [string, Buffer[], RegExp][] = [
    ['nothing', [], /call has 0 bytes, want one message$/],
    ['part of a header', [Buffer.from([0, 0])], /call has 2 bytes, want one message$/],
    ['a header alone', [good.subarray(0, 5)], /call has 5 bytes, want one message of 12$/],
    ['a message cut short', [good.subarray(0, 11)], /call has 11 bytes, want one message of 12$/],
    ['two messages', [good, good], /call has 24 bytes, want one message of 12$/],
    ['two messages at once', [Buffer.concat([good, good])], /call has 24 bytes/],
    ['a surplus byte', [...cut(good, [6, 3]), Buffer.from([0])], /call has 13 bytes/],
    ['4 GiB that are only claimed', [far], /call has 6 bytes, want one message of 4294967300$/],
    ['a compressed message', [frame(Buffer.from('message'), 1)], /message is compressed/],
  ]
  for (const [name, pieces, message] of cases) {
    t.throws(() => read(pieces), { reason: 'MALFORMED_MESSAGE', message }, name)
  }
})
