// needs: python
import { DATATYPES, type Datatype } from '@tutti/tensor'

import * as fc from 'fast-check'
import t from 'tap'
import { openBuiltins, Refused } from '../testing/builtin-steps.ts'
import { draw, numpyName } from '../testing/draw.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import {
  equalTensors,
  numberTensor,
  randomNumbers,
  randomTensor,
} from '../testing/random-tensors.ts'

const shapes = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 })
const seeds = fc.integer()

await t.test('numeric built-ins are equal to NumPy', { skip: WITHOUT_PYTHON }, async (t) => {
  const run = await openBuiltins(t)
  const numpy = startNumpy(t, TEST_PYTHON ?? '')
  await t.test('softmax', async (t) => {
    const cases = fc.tuple(shapes, fc.constantFrom('FP16', 'FP32', 'FP64'), seeds, fc.nat())
    for (const [shape, datatype, seed, place] of draw(cases, 30)) {
      const axis = (place % (2 * shape.length)) - shape.length
      const x = randomTensor(randomNumbers(seed), { name: 'input', datatype, shape })
      const [want] = await numpy(
        `(lambda e: e / e.sum(${axis}, keepdims=True))(np.exp(x - x.max(${axis}, keepdims=True))).astype(input.dtype)`,
        [x],
        'x = input.astype(np.float32) if input.dtype == np.float16 else input',
      )
      const [got] = await run(t, { name: 'softmax', axis }, [x])
      const within =
        datatype === 'FP16'
          ? { relative: 1e-3, absolute: 1e-7 }
          : { relative: 2e-6, absolute: 1e-7 }
      equalTensors(t, got, want, `softmax ${datatype} [${shape.join(',')}] ${axis}`, within)
    }
  })
  await t.test('cast', async (t) => {
    const castable = Object.keys(DATATYPES).filter((one) => !['BYTES', 'BF16'].includes(one))
    const datatypes = fc.constantFrom(...(castable as Datatype[]))
    const cases = fc.tuple(shapes, datatypes, datatypes, seeds)
    for (const [shape, datatype, to, seed] of draw(cases, 60)) {
      const bounds = datatype.startsWith('FP') && to.startsWith('U') ? { least: 0, most: 200 } : {}
      const x = randomTensor(randomNumbers(seed), { name: 'input', datatype, shape, ...bounds })
      const dtype = numpyName(to)
      const [got] = await run(t, { name: 'cast', datatype: to }, [x])
      const [want] = await numpy(`input.astype('${dtype}')`, [x])
      equalTensors(t, got, want, `cast ${datatype} to ${to}`)
      if (!datatype.startsWith('FP') || to.startsWith('FP') || to === 'BOOL') continue
      const given = { name: 'cast', datatype: to, rounding: 'nearest' }
      const [rounded] = await run(t, given, [x])
      const [wanted] = await numpy(`np.rint(input).astype('${dtype}')`, [x])
      equalTensors(t, rounded, wanted, `cast ${datatype} to ${to}, nearest`)
    }
  })
  await t.test('a cast of floats that do not fit gives the nearest integer', async (t) => {
    const values = [Number.NaN, Infinity, -Infinity, -1.5, 1e30, -1e30]
    for (const datatype of ['FP32', 'FP64'] as const) {
      const x = numberTensor('input', datatype, [6], values)
      for (const [to, most, least] of [
        ['UINT8', 255, 0],
        ['INT16', 32_767, -32_768],
        ['INT32', datatype === 'FP32' ? 2 ** 31 - 128 : 2 ** 31 - 1, -(2 ** 31)],
      ] as const) {
        const [got] = await run(t, { name: 'cast', datatype: to }, [x])
        const truncated = Math.max(least, -1)
        const want = numberTensor('', to, [6], [0, most, least, truncated, most, least])
        equalTensors(t, got, want, `${datatype} to ${to}`)
      }
    }
    const whole = numberTensor('input', 'INT32', [1], [1])
    await t.rejects(
      run(t, { name: 'cast', datatype: 'FP32', rounding: 'nearest' }, [whole]),
      new Refused([
        {
          path: 'rounding',
          got: '"nearest" from INT32 to FP32',
          want: 'truncate, or an integer of a float',
        },
      ]),
    )
  })
})
