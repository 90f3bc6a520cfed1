import type { NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { parseModelConfig } from '../text/parse-model-config.ts'
import { applyOutputReshape } from './reshape.ts'

const config = (text: string) => parseModelConfig(`name: "m" ${text}`, 'config.pbtxt')
const tensor = (name: string, shape: readonly number[]): NamedTensor => ({
  name,
  datatype: 'UINT8',
  shape,
  data: new Uint8Array(shape.reduce((a, b) => a * b, 1)),
})

await t.test('an output gets the declared shape, its bytes stay where they are', async (t) => {
  const cases = [
    { text: 'output { name: "y" dims: [2, 2] reshape { shape: 4 } }', from: [4], to: [2, 2] },
    {
      text: 'max_batch_size: 8 output { name: "y" dims: 1 reshape { } }',
      from: [3],
      to: [3, 1],
    },
    {
      text: 'max_batch_size: 8 output { name: "y" dims: [2, 2, -1, -1] reshape { shape: [-1, 4, -1] } }',
      from: [3, 5, 4, 6],
      to: [3, 2, 2, 5, 6],
    },
  ]
  for (const { text, from, to } of cases) {
    const output = tensor('y', from)
    const reshaped = applyOutputReshape(config(text), output, from[0] ?? 0)
    t.same(reshaped.shape, to, text)
    t.equal(reshaped.data, output.data)
  }
})

await t.test('an output without a reshape is returned as it is', async (t) => {
  const output = tensor('y', [5])
  t.equal(applyOutputReshape(config('output { name: "y" dims: 7 }'), output, 0), output)
  t.equal(applyOutputReshape(config(''), output, 0), output)
})

await t.test('a shape that the reshape does not declare is RESPONSE_INVALID', async (t) => {
  const batching = config(
    'max_batch_size: 8 output { name: "y" dims: [2, 2] reshape { shape: 4 } }',
  )
  t.throws(() => applyOutputReshape(batching, tensor('y', [3, 5]), 3), {
    reason: 'RESPONSE_INVALID',
    code: 'INTERNAL',
    message: "output 'y' of model 'm': shape [3,5], want [3,4]",
  })
  t.throws(() => applyOutputReshape(batching, tensor('y', [4]), 1), {
    reason: 'RESPONSE_INVALID',
    message: /shape \[4\], want \[1,4\]$/,
  })
  const plain = config('output { name: "y" dims: [2, 2] reshape { shape: 4 } }')
  t.throws(() => applyOutputReshape(plain, tensor('y', [2, 2]), 0), {
    message: "output 'y' of model 'm': shape [2,2], want [4]",
  })
  // The reshape of an unvalidated config may not hold the same number of elements.
  const wrong = config('output { name: "y" dims: 3 reshape { shape: 4 } }')
  t.throws(() => applyOutputReshape(wrong, tensor('y', [4]), 0), {
    reason: 'RESPONSE_INVALID',
    message: /shape \[4\], want \[4\]$/,
  })
})
