import * as fc from 'fast-check'
import t from 'tap'
import { ownBytes } from './own-bytes.ts'

const READ_BYTES = 65_536

await t.test('what is kept of a read holds its bytes, and not much more memory', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 20_000 }), { maxLength: 30 }), (sizes) => {
      const kept = sizes.map((size, i) => {
        const read = Buffer.allocUnsafeSlow(READ_BYTES).fill(i)
        const own = ownBytes(read.subarray(100, 100 + size))
        if (own.buffer !== read.buffer) read.fill(0xee)
        return own
      })
      return kept.every(
        (own, i) =>
          own.byteLength === sizes[i] &&
          own.every((byte) => byte === i) &&
          own.buffer.byteLength <= Math.max(4096, 4 * own.byteLength),
      )
    }),
  )
  t.pass()
})
