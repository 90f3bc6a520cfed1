import * as fc from 'fast-check'
import t from 'tap'
import { LoosePieces } from './loose-pieces.ts'

await t.test('many small pieces become few, and all bytes stay in their order', (t) => {
  const pieces: Uint8Array[] = []
  const loose = new LoosePieces()
  const sent = Buffer.from(Array.from({ length: 100_000 }, (_, at) => at % 251))
  let most = 0
  for (const byte of sent) {
    pieces.push(Buffer.of(byte))
    loose.added(pieces, 0, 0)
    most = Math.max(most, pieces.length)
  }
  t.ok(most < 1200, `${most} pieces`)
  t.ok(Buffer.concat(pieces).equals(sent))
  t.end()
})

await t.test('large pieces are not copied', (t) => {
  const pieces: Uint8Array[] = []
  const loose = new LoosePieces()
  for (let count = 0; count < 2048; count++) {
    pieces.push(new Uint8Array(2048))
    loose.added(pieces, 0, 0)
  }
  t.equal(pieces.length, 2048)
  t.end()
})

await t.test('a large message is joined as it comes, once a part of it is there', (t) => {
  const size = 2 ** 21
  const pieces: Uint8Array[] = []
  const loose = new LoosePieces()
  const counts: number[] = []
  for (let got = 2 ** 17; got <= size + 2 ** 17; got += 2 ** 17) {
    pieces.push(Buffer.alloc(2 ** 17, got / 2 ** 17))
    loose.added(pieces, got, size)
    counts.push(pieces.length)
  }
  t.same(counts, [1, ...Array(15).fill(1), 2], 'what comes after it stays apart')
  t.ok(pieces[0]?.every((byte, at) => byte === Math.floor(at / 2 ** 17) + 1))
  t.equal(pieces[0]?.byteLength, size)
  t.end()
})

await t.test('pieces may be taken away meanwhile', (t) => {
  const sizes = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(sizes, (takes) => {
      const pieces: Uint8Array[] = []
      const loose = new LoosePieces()
      const taken: Uint8Array[] = []
      let sent = 0
      for (const take of takes) {
        for (let count = 0; count < 100; count++) {
          pieces.push(Buffer.of(sent++ % 256))
          loose.added(pieces, 0, 0)
        }
        for (let count = 0; count < take; count++) taken.push(pieces.shift() ?? new Uint8Array(0))
      }
      const all = Buffer.concat([...taken, ...pieces])
      return all.byteLength === sent && all.every((byte, at) => byte === at % 256)
    }),
    { numRuns: 100 },
  )
  t.end()
})
