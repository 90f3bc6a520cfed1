import { DATATYPES, encodeBytesTensor, isDatatype } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { tracedTensor } from './traced-tensor.ts'

const texts = (...words: readonly string[]) =>
  encodeBytesTensor(words.map((word) => Buffer.from(word)))

await t.test('elements that are there are written, and those cut short are not', (t) => {
  const data = new Uint8Array(new Float32Array([1.5, -2]).buffer)
  const traced = { name: 'x', datatype: 'FP32', data, shape: [2] } as const
  t.match(tracedTensor(traced), { data: '1.5,-2', shape: '2', dtype: 'FP32' })
  t.match(tracedTensor({ ...traced, shape: [7] }), { data: '1.5,-2', shape: '7' })
  t.equal(tracedTensor({ ...traced, shape: [7], data: data.subarray(1) }).data.split(',').length, 1)
  t.equal(tracedTensor({ ...traced, shape: [100, 1, 32, 100] }).data, '1.5,-2,...')
  const bytes = { name: 's', datatype: 'BYTES', shape: [2] } as const
  t.equal(tracedTensor({ ...bytes, data: texts('a', 'b') }).data, '"a","b"')
  t.equal(tracedTensor({ ...bytes, data: texts('a', 'b').subarray(0, 9) }).data, '"a"')
  t.equal(tracedTensor({ ...bytes, data: texts('a', 'b').subarray(0, 7) }).data, '"a"')
  t.end()
})

await t.test('any bytes under any shape and datatype are traced', (t) => {
  const tensor = fc.record({
    name: fc.string(),
    datatype: fc.constantFrom(...Object.keys(DATATYPES).filter(isDatatype)),
    shape: fc.array(fc.integer({ min: -2, max: 2 ** 40 }), { maxLength: 4 }),
    data: fc.uint8Array({ maxLength: 64 }),
  })
  fc.assert(
    fc.property(tensor, (one) => {
      t.equal(tracedTensor(one).dtype, one.datatype)
    }),
    { numRuns: 300 },
  )
  t.end()
})
