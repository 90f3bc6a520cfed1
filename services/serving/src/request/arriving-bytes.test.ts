import * as fc from 'fast-check'
import t from 'tap'
import { ArrivingBytes } from './arriving-bytes.ts'

const sizes = fc.array(fc.nat({ max: 20_000 }), { maxLength: 30 })

/** Resident memory of this process. */
const residentBytes = (): number => process.memoryUsage.rss()

await t.test('bytes are the same in whatever pieces they come, announced or not', async (t) => {
  const surplus = fc.nat({ max: 100 })
  fc.assert(
    fc.property(sizes, surplus, fc.boolean(), (lengths, more, isAnnounced) => {
      const pieces = lengths.map((length, i) => Buffer.alloc(length, i))
      const sent = Buffer.concat(pieces)
      const arriving = new ArrivingBytes(isAnnounced ? sent.byteLength : undefined)
      for (const piece of pieces) {
        const read = Buffer.concat([Buffer.of(1, 2, 3), piece])
        t.equal(arriving.add(read, 3), read.byteLength)
        read.fill(0xaa)
      }
      t.ok(arriving.bytes.equals(sent))
      t.equal(arriving.isWhole, isAnnounced)
      if (isAnnounced)
        t.equal(arriving.add(Buffer.alloc(more)), 0, 'what comes after it stays apart')
    }),
  )
})

await t.test('what is there does not change with what comes later', async (t) => {
  const arriving = new ArrivingBytes()
  arriving.add(Buffer.from('first'))
  const { bytes } = arriving
  for (let i = 0; i < 1000; i++) arriving.add(Buffer.from('more'))
  t.equal(bytes.toString(), 'first')
})

await t.test('a size that is only announced takes no memory', async (t) => {
  const before = residentBytes()
  const held = Array.from({ length: 1000 }, () => new ArrivingBytes(2 ** 31 - 1))
  for (const arriving of held) arriving.add(Buffer.alloc(100, 1))
  const grown = residentBytes() - before
  t.ok(grown < 32 * 2 ** 20, `1000 large messages that have begun take ${grown} bytes`)
  t.equal(held.length, 1000)
})

await t.test('a large message gets all its memory with a sixteenth of it', async (t) => {
  const arriving = new ArrivingBytes(2 ** 24)
  for (let i = 0; i < 16; i++) arriving.add(Buffer.alloc(2 ** 16))
  t.equal(arriving.bytes.buffer.byteLength, 2 ** 20)
  arriving.add(Buffer.alloc(1))
  t.equal(arriving.bytes.buffer.byteLength, 2 ** 24)
})

await t.test('a million pieces of one byte cost no more than their bytes', async (t) => {
  // With a time that grows with the square of their number this takes minutes.
  for (const arriving of [new ArrivingBytes(1_000_000), new ArrivingBytes()]) {
    for (let at = 0; at < 1_000_000; at++) arriving.add(Buffer.of(at % 251))
    t.ok(arriving.bytes.every((byte, at) => byte === at % 251))
    t.ok(arriving.bytes.buffer.byteLength <= 2_000_000)
  }
})

await t.test('little of a large one is copied at once, announced or not', async (t) => {
  const piece = Buffer.alloc(2 ** 16)
  for (const announced of [undefined, 2 ** 28]) {
    const arriving = new ArrivingBytes(announced)
    let copied = 0
    for (let got = 0; got < 2 ** 28; got += piece.byteLength) {
      const { buffer } = arriving.bytes
      arriving.add(piece)
      if (arriving.bytes.buffer !== buffer) copied = Math.max(copied, got)
    }
    t.ok(copied > 0)
    t.ok(copied < 34 * 2 ** 20, `${copied} bytes were copied at once, announced: ${announced}`)
  }
})
