import t from 'tap'
import { type InputSource, typedData } from './input-refusals.ts'

/** Typed contents with one packed field. */
function packed(field: number, bytes: number): Buffer {
  const length = []
  for (let left = bytes; left > 0; left = Math.floor(left / 128)) {
    length.push((left % 128) + (left >= 128 ? 128 : 0))
  }
  return Buffer.concat([Buffer.of(8 * field + 2, ...length), Buffer.alloc(bytes, 1)])
}

function openSource(): InputSource {
  return {
    message: { rawInputContents: [] } as never,
    model: { name: 'm' } as never,
    call: { maxMessageBytes: 2 ** 28, backend: {}, charge: () => {} },
  }
}

await t.test('typed contents may be as large as the documentation says', (t) => {
  for (const [datatype, field, bytes] of [
    ['FP32', 6, 64 * 2 ** 20],
    ['INT8', 2, 5 * 2 ** 20],
  ] as const) {
    const input = { name: 'x', datatype, shape: [bytes], parameters: new Map() }
    t.equal(typedData(openSource(), input, packed(field, bytes)).byteLength, bytes, datatype)
    const more = packed(field, bytes + bytes / 64)
    t.throws(() => typedData(openSource(), input, more), {
      message: /too many fields or typed elem/,
    })
  }
  t.end()
})
