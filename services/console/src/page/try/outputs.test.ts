import type { Datatype } from '@tutti/tensor'
import t from 'tap'
import { outputPicture } from './output-picture.ts'
import { formatElement, kindOf, numbersOf, readBytes } from './tensor-elements.ts'

const floats = (values: readonly number[]) => new Uint8Array(Float32Array.from(values).buffer)

await t.test('arrays with colours are pictures, in both orders', async (t) => {
  const size = 64
  const planar = Uint8Array.from({ length: size * 3 }, (_, i) => Math.floor(i / size) * 100)
  const mixed = Uint8Array.from({ length: size * 3 }, (_, i) => (i % 3) * 100)
  for (const [shape, data] of [
    [[3, 8, 8], planar],
    [[1, 3, 8, 8], planar],
    [[8, 8, 3], mixed],
  ] as const) {
    const shown = outputPicture({ datatype: 'UINT8', shape, data })
    t.same([...(shown?.rgba.subarray(0, 4) ?? [])], [0, 100, 200, 255], String(shape))
  }
  const two = outputPicture({
    datatype: 'UINT8',
    shape: [2, 8, 8, 1],
    data: planar.subarray(0, 128),
  })
  t.match(two, { batch: 2, width: 8, height: 8 })
})

/** Grey, of these values again and again. */
function picture(values: readonly number[]) {
  const data = floats(Array.from({ length: 64 }, (_, i) => values[i % values.length] ?? 0))
  return outputPicture({ datatype: 'FP32', shape: [8, 8, 1], data })
}

await t.test(
  'the range of values from black to white is 0 to 1, 0 to 255, or that of the values',
  async (t) => {
    t.match(picture([0, 1]), { range: [0, 1] })
    t.same([...(picture([0, 1])?.rgba.subarray(0, 8) ?? [])], [0, 0, 0, 255, 255, 255, 255, 255])
    t.match(picture([0, 200]), { range: [0, 255] })
    t.match(picture([-1, 3, NaN]), { range: [-1, 3] })
    t.match(picture([5000]), { range: [5000, 5000] })
    t.match(picture([NaN]), { range: [0, 1] })
  },
)

await t.test('what is no picture, or too short for one, is none', async (t) => {
  const data = new Uint8Array(10_000)
  const cases: readonly (readonly [Datatype, readonly number[]])[] = [
    ['UINT8', [8, 8]],
    ['UINT8', [1, 1, 1000]],
    ['UINT8', [8, 8, 2]],
    ['UINT8', [200, 200, 3]],
    ['BYTES', [8, 8, 1]],
  ]
  for (const [datatype, shape] of cases) {
    t.equal(outputPicture({ datatype, shape, data }), undefined, `${datatype} ${String(shape)}`)
  }
  const none = { datatype: 'UINT8', shape: [0, 8, 8, 3], data: new Uint8Array(0) } as const
  t.equal(outputPicture(none), undefined)
})

await t.test('elements are written with the digits that they have', async (t) => {
  const long = new Uint8Array(BigInt64Array.of(9_007_199_254_740_993n).buffer)
  const { count, at } = numbersOf({ datatype: 'INT64', shape: [1], data: long })
  t.equal(count, 1)
  t.equal(formatElement(at(0), 'INT64'), '9007199254740993')
  t.equal(
    formatElement(numbersOf({ datatype: 'FP32', shape: [1], data: floats([0.1]) }).at(0), 'FP32'),
    '0.1',
  )
  t.equal(formatElement(0.1, 'FP64'), '0.1')
  t.equal(formatElement(1, 'BOOL'), 'true')
  t.equal(formatElement(NaN, 'FP32'), 'NaN')
  const half = numbersOf({ datatype: 'FP16', shape: [1], data: Uint8Array.of(0, 0x3c) })
  t.equal(half.at(0), 1)
})

await t.test('elements of BYTES are told apart by their bytes', async (t) => {
  t.equal(kindOf(Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1)), 'png')
  t.equal(kindOf(Uint8Array.of(0xff, 0xd8, 0xff, 0xe0)), 'jpeg')
  t.equal(kindOf(Buffer.from('<svg onload=alert(1)>')), 'text')
  t.equal(kindOf(Uint8Array.of(0xff, 0xfe)), 'bytes')
  t.equal(kindOf(new Uint8Array(0)), 'text')
  t.same(readBytes(Uint8Array.of(1, 0, 0, 0, 65, 0, 0, 0, 0), 1), {
    first: [Uint8Array.of(65)],
    count: 2,
    isCut: false,
  })
  t.match(readBytes(Uint8Array.of(9, 0, 0, 0, 65), 4), { count: 0, isCut: true })
})
