import t from 'tap'
import { openBuiltins } from '../testing/builtin-steps.ts'
import { equalTensors, numberTensor } from '../testing/random-tensors.ts'

await t.test('a cast of floats that do not fit gives the nearest integer', async (t) => {
  const run = await openBuiltins(t)
  const values = [Number.NaN, Infinity, -Infinity, -1.5, 1e30, -1e30]
  for (const datatype of ['FP32', 'FP64'] as const) {
    const input = numberTensor('input', datatype, [6], values)
    for (const [to, most, least] of [
      ['UINT8', 255, 0],
      ['INT16', 32_767, -32_768],
      // The greatest integer that FP32 has.
      ['INT32', datatype === 'FP32' ? 2 ** 31 - 128 : 2 ** 31 - 1, -(2 ** 31)],
    ] as const) {
      const [got] = await run(t, { name: 'cast', datatype: to }, [input])
      const want = numberTensor('', to, [6], [0, most, least, Math.max(least, -1), most, least])
      equalTensors(t, got, want, `${datatype} to ${to}`)
    }
  }
})

await t.test('a cast to BF16 keeps 8 bits, and comes back as it was', async (t) => {
  const run = await openBuiltins(t)
  const input = numberTensor('input', 'FP32', [4], [1, -2.5, 3.140625, 2 ** 100])
  const [brain] = await run(t, { name: 'cast', datatype: 'BF16' }, [input])
  if (brain === undefined) throw new Error('there is no output')
  const [back] = await run(t, { name: 'cast', datatype: 'FP32' }, [{ ...brain, name: 'input' }])
  equalTensors(t, back, input, 'all of them are BF16 numbers')
})
