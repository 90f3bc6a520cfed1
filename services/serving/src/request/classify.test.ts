import { decodeBytesTensor, type TensorValue } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { classify } from './classify.ts'
import { toDecimalText } from './decimal-text.ts'

const bytesOf = (view: { readonly buffer: ArrayBufferLike }) => new Uint8Array(view.buffer)
const texts = (tensor: TensorValue) =>
  decodeBytesTensor(tensor.data).map((bytes) => Buffer.from(bytes).toString())

await t.test('numbers print as in C++', async (t) => {
  const cases: readonly (readonly [number, string])[] = [
    [0, '0.000000'],
    [-0, '-0.000000'],
    [3.3, '3.300000'],
    [Math.fround(3.3), '3.300000'],
    [1 / 128, '0.007812'],
    [3 / 128, '0.023438'],
    [-5 / 128, '-0.039062'],
    [1e-7, '0.000000'],
    [-1e-7, '-0.000000'],
    [0.9999996, '1.000000'],
    [123_456_789.125, '123456789.125000'],
    [2 ** 53, '9007199254740992.000000'],
    [1e22, '10000000000000000000000.000000'],
    [-1e22, '-10000000000000000000000.000000'],
    [Number.NaN, 'nan'],
    [Number.POSITIVE_INFINITY, 'inf'],
    [Number.NEGATIVE_INFINITY, '-inf'],
  ]
  for (const [value, text] of cases) t.equal(toDecimalText(value), text)
})

await t.test('what is printed is within half a millionth of the number', async (t) => {
  fc.assert(
    fc.property(
      fc.float({ noNaN: true, noDefaultInfinity: true, min: -1e9, max: 1e9 }),
      (value) => {
        const text = toDecimalText(value)
        t.match(text, /^-?\d+\.\d{6}$/)
        t.ok(Math.abs(Number(text) - value) <= 0.500001e-6 + Math.abs(value) * 2 ** -52)
      },
    ),
    { numRuns: 300 },
  )
})

await t.test('every datatype with an order is classified', async (t) => {
  const cases: readonly (readonly [TensorValue['datatype'], Uint8Array, string])[] = [
    ['UINT8', Uint8Array.of(1, 200), '200:1'],
    ['UINT16', bytesOf(Uint16Array.of(1, 60_000)), '60000:1'],
    ['UINT32', bytesOf(Uint32Array.of(1, 2 ** 32 - 1)), '4294967295:1'],
    ['UINT64', bytesOf(BigUint64Array.of(1n, 2n ** 64n - 1n)), '18446744073709551615:1'],
    ['INT8', bytesOf(Int8Array.of(-1, 5)), '5:1'],
    ['INT16', bytesOf(Int16Array.of(-300, -200)), '-200:1'],
    ['INT32', bytesOf(Int32Array.of(-3, 7)), '7:1'],
    ['INT64', bytesOf(BigInt64Array.of(-3n, 7n)), '7:1'],
    ['FP32', bytesOf(Float32Array.of(-3, 0.5)), '0.500000:1'],
    ['FP64', bytesOf(Float64Array.of(Number.NaN, 0.5)), '0.500000:1'],
  ]
  for (const [datatype, data, text] of cases) {
    const tensor = { datatype, shape: [2], data }
    t.strictSame(texts(classify(tensor, { count: 1, isBatched: false })), [text], datatype)
  }
})

await t.test('shape and count follow the batch', async (t) => {
  const tensor: TensorValue = {
    datatype: 'FP32',
    shape: [2, 2],
    data: bytesOf(Float32Array.of(1, 2, 4, 3)),
  }
  const whole = classify(tensor, { count: 3, isBatched: false })
  t.strictSame(whole.shape, [3])
  t.strictSame(texts(whole), ['4.000000:2', '3.000000:3', '2.000000:1'])
  const each = classify(tensor, { count: 9, isBatched: true, labels: ['zero', ''] })
  t.strictSame(each.shape, [2, 2], 'at most as many classes as there are')
  t.strictSame(texts(each), ['2.000000:1', '1.000000:0:zero', '4.000000:0:zero', '3.000000:1'])
  const none = classify(
    { ...tensor, shape: [0, 2], data: new Uint8Array(0) },
    { count: 1, isBatched: true },
  )
  t.strictSame(none.shape, [0, 0])
})

await t.test('NaN comes last and equal values keep their order', async (t) => {
  const data = bytesOf(Float32Array.of(Number.NaN, 1, 1, Number.NaN))
  const top = classify({ datatype: 'FP32', shape: [4], data }, { count: 4, isBatched: false })
  t.strictSame(texts(top), ['1.000000:1', '1.000000:2', 'nan:0', 'nan:3'])
})

await t.test('any numbers come in the order that sorting all of them gives', async (t) => {
  const value = fc.oneof(
    fc.constantFrom(0, -0, 1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
    fc.float(),
  )
  fc.assert(
    fc.property(
      fc.array(value, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 1, max: 31 }),
      (numbers, count) => {
        const data = bytesOf(Float32Array.from(numbers))
        const top = classify(
          { datatype: 'FP32', shape: [numbers.length], data },
          { count, isBatched: false },
        )
        const order = numbers.map((_, index) => index)
        order.sort((a, b) => {
          const [x = 0, y = 0] = [numbers[a], numbers[b]]
          if (x > y) return -1
          return x < y ? 1 : Number(Number.isNaN(x)) - Number(Number.isNaN(y))
        })
        const indexes = texts(top).map((text) => Number(text.split(':')[1]))
        t.strictSame(indexes, order.slice(0, count))
      },
    ),
    { numRuns: 300 },
  )
})

await t.test(
  'a million elements, and as many classes as there may be, do not take long',
  async (t) => {
    const million = Float32Array.from({ length: 1_000_000 }, (_, i) => (i * 0.618_033_99) % 1)
    const tensor = { datatype: 'FP32', shape: [1_000_000], data: bytesOf(million) } as const
    for (const count of [5, 16_384]) {
      const times = [1, 2, 3].map(() => {
        const before = process.threadCpuUsage()
        t.strictSame(classify(tensor, { count, isBatched: false }).shape, [count])
        const { user, system } = process.threadCpuUsage(before)
        return (user + system) / 1000
      })
      // Sorted with their indexes they took two seconds.
      t.ok(Math.min(...times) < 500, `${times.map(Math.round).join(', ')} ms`)
    }
    t.throws(() => classify(tensor, { count: 16_385, isBatched: false }), {
      reason: 'INVALID_REQUEST',
      message: 'classification output has 16385 classes, want at most 16384',
    })
  },
)

await t.test('what has no order or too many elements is refused', async (t) => {
  for (const datatype of ['BYTES', 'BOOL', 'FP16', 'BF16'] as const) {
    const tensor = { datatype, shape: [1], data: new Uint8Array(2) }
    t.throws(() => classify(tensor, { count: 1, isBatched: false }), {
      reason: 'INVALID_REQUEST',
      message: `class result not available for output due to unsupported type '${datatype}'`,
    })
  }
  const large = { datatype: 'UINT8', shape: [1_000_001], data: new Uint8Array(1_000_001) } as const
  t.throws(() => classify(large, { count: 1, isBatched: false }), {
    reason: 'INVALID_REQUEST',
    message: 'classification output tensor too large',
  })
})

/** Values of which each partition at the middle takes away one, the least. */
function hardToSelect(count: number): Float32Array {
  const places = Array.from({ length: count }, (_, i) => i)
  const values = new Float32Array(count)
  for (let last = count - 1; last >= 0; last -= 1) {
    const middle = last >>> 1
    const place = places[middle] ?? 0
    values[place] = count - last
    places[middle] = places[last] ?? 0
    places[last] = place
  }
  return values
}

await t.test('no order of values makes classes take longer than sorting them', (t) => {
  const values = hardToSelect(60_000)
  const data = new Uint8Array(values.buffer)
  const tensor = { datatype: 'FP32' as const, shape: [60_000], data }
  const before = process.threadCpuUsage()
  const classes = classify(tensor, { count: 1, isBatched: false })
  const { user, system } = process.threadCpuUsage(before)
  const [text] = texts(classes)
  t.equal(text, `60000.000000:${values.indexOf(60_000)}`)
  // Partitions alone take two seconds.
  t.ok((user + system) / 1000 < 400, `${(user + system) / 1000} ms of processor time`)
  t.end()
})
