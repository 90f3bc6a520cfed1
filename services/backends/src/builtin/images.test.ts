// needs: python
import t from 'tap'
import { openBuiltins } from '../testing/builtin-steps.ts'
import { compareWithNumpy, type NumpyCase } from '../testing/compare-with-numpy.ts'
import { type Dice, numpyName, python } from '../testing/dice.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'

/** A picture, or a stack of some, none of them too. */
const imageShape = (dice: Dice, channels = dice.pick(1, 3, 4)): number[] => {
  const stack = dice.pick([], [], [dice.int(0, 3)], [dice.int(1, 2), dice.int(1, 2)])
  return [...stack, dice.int(1, 24), dice.int(1, 24), channels]
}

const CASES: Readonly<Record<string, (dice: Dice, count: number) => NumpyCase>> = {
  normalise: (dice) => {
    const shape = imageShape(dice)
    const image = dice.tensor('image', dice.pick('UINT8', 'FP32', 'FP16', 'UINT16'), shape)
    const numbers = dice.isTrue() ? (shape.at(-1) ?? 1) : 1
    const mean = Array.from({ length: numbers }, () => dice.float(-0.2, 0.8))
    const std = Array.from({ length: numbers }, () => dice.float(0.1, 1.1))
    const [layout, datatype] = [dice.pick('HWC', 'CHW'), dice.pick('FP32', 'FP16')]
    const scale = dice.pick(1, 1 / 255, 2.5)
    const setup = `f = np.float32
y = (image.astype(f) * f(${scale}) - np.array(${python(mean)}, f)) / np.array(${python(std)}, f)`
    const moved = layout === 'CHW' ? 'np.moveaxis(y, -1, -3)' : 'y'
    const expression = `${moved}.astype('${numpyName(datatype)}')`
    return { options: { scale, mean, std, layout, datatype }, inputs: [image], setup, expression }
  },
}

await t.test(
  'built-ins for pictures are equal to NumPy, OpenCV and PIL',
  {
    skip: WITHOUT_PYTHON,
  },
  async (t) => {
    const run = await openBuiltins(t)
    const numpy = startNumpy(t, TEST_PYTHON ?? '')
    for (const [name, draw] of Object.entries(CASES)) {
      await t.test(name, (t) => compareWithNumpy(t, { run, numpy }, name, draw))
    }
  },
)
