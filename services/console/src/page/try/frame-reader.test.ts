import * as fc from 'fast-check'
import t from 'tap'
import { StreamFrameReader } from './frame-reader.ts'

function frame(json: string, data: Uint8Array): Uint8Array {
  const text = new TextEncoder().encode(json)
  const head = new DataView(new ArrayBuffer(8))
  head.setUint32(0, text.byteLength, true)
  head.setUint32(4, data.byteLength, true)
  return Buffer.concat([new Uint8Array(head.buffer), text, data])
}

await t.test('in whatever pieces a stream comes, its frames are the same', async (t) => {
  const frames = fc.array(fc.tuple(fc.string({ unit: 'binary' }), fc.uint8Array({ maxLength: 40 })))
  const property = fc.property(frames, fc.array(fc.nat(30)), (sent, sizes) => {
    const bytes = Buffer.concat(sent.map(([json, data]) => frame(json, data)))
    const reader = new StreamFrameReader()
    const got: [string, number[]][] = []
    const take = (piece: Uint8Array): void => {
      for (const { json, data } of reader.push(piece)) got.push([json, [...data]])
    }
    let at = 0
    for (const size of sizes) take(bytes.subarray(at, (at += size)))
    take(bytes.subarray(at))
    const wanted = sent.map(([json, data]) => [
      new TextDecoder().decode(new TextEncoder().encode(json)),
      [...data],
    ])
    return JSON.stringify(got) === JSON.stringify(wanted) && reader.rest === 0
  })
  t.doesNotThrow(() => fc.assert(property))
})

await t.test('what is cut off is no frame, and what is too large is refused', async (t) => {
  const reader = new StreamFrameReader()
  t.same(reader.push(frame('{}', new Uint8Array(9)).subarray(0, 12)), [])
  t.equal(reader.rest, 12)
  const large = new Uint8Array(8).fill(255)
  t.throws(() => new StreamFrameReader().push(large), { message: /a response has \d+ bytes/ })
})
