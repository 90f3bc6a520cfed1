import * as fc from 'fast-check'
import t from 'tap'
import { ownCopy } from './own-memory.ts'

const READ_BYTES = 65_536
const sizes = fc.array(fc.nat({ max: 20_000 }), { maxLength: 30 })

await t.test('a copy holds its bytes, and not much more memory', async (t) => {
  fc.assert(
    fc.property(sizes, (lengths) => {
      const kept = lengths.map((length, i) => {
        const read = Buffer.alloc(READ_BYTES, i)
        const own = ownCopy(read.subarray(100, 100 + length))
        read.fill(0xee)
        return own
      })
      return kept.every(
        (own, i) =>
          own.byteLength === lengths[i] &&
          own.every((byte) => byte === i) &&
          own.buffer.byteLength <= Math.max(4096, own.byteLength),
      )
    }),
  )
  t.pass()
})
