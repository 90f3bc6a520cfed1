// needs: python
import * as fc from 'fast-check'
import t from 'tap'
import { openBuiltins } from '../testing/builtin-steps.ts'
import { draw } from '../testing/draw.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { equalTensors, randomNumbers, randomTensor } from '../testing/random-tensors.ts'

const sides = fc.integer({ min: 1, max: 24 })
const channels = fc.constantFrom(1, 3, 4)

await t.test('built-ins for pictures', { skip: WITHOUT_PYTHON }, async (t) => {
  const run = await openBuiltins(t)
  const numpy = startNumpy(t, TEST_PYTHON ?? '')
  await t.test('normalise', async (t) => {
    const cases = fc.tuple(
      fc.record({
        dims: fc.tuple(sides, sides, channels),
        stack: fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 2 }),
        source: fc.constantFrom('UINT8', 'FP32', 'FP16', 'UINT16'),
        datatype: fc.constantFrom('FP32', 'FP16'),
        layout: fc.constantFrom('HWC', 'CHW'),
        isEach: fc.boolean(),
        scale: fc.constantFrom(1, 1 / 255, 2.5),
      }),
      fc.integer(),
    )
    for (const [one, seed] of draw(cases, 60)) {
      const { layout, datatype, scale } = one
      const random = randomNumbers(seed)
      const shape = [...one.stack, ...one.dims]
      const x = randomTensor(random, { name: 'image', datatype: one.source, shape })
      const count = one.isEach ? one.dims[2] : 1
      const mean = Array.from({ length: count }, () => random() - 0.2)
      const std = Array.from({ length: count }, () => 0.1 + random())
      const given = { name: 'normalise', scale, mean, std, layout, datatype }
      const [got] = await run(t, given, [x])
      const [want] = await numpy(
        `np.moveaxis(y, -1, -3) if ${layout === 'CHW' ? 'True' : 'False'} else y`,
        [x],
        `f = np.float32
y = ((image.astype(f) * f(${scale}) - np.array(${JSON.stringify(mean)}, f)) / np.array(${JSON.stringify(std)}, f)).astype('${datatype.replace('FP', 'float')}')`,
      )
      equalTensors(
        t,
        got,
        want,
        `normalise ${JSON.stringify(given)} of ${one.source} [${shape.join(',')}]`,
      )
    }
  })
})
