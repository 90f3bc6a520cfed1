// needs: python
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { openBuiltins, Refused } from '../testing/builtin-steps.ts'
import { compareWithNumpy } from '../testing/compare-with-numpy.ts'
import { createDice, type Dice, python, times } from '../testing/dice.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { equalTensors, numbersOf, numberTensor } from '../testing/random-tensors.ts'
import { openProbabilityBoxes } from './code/boxes/open-probability-boxes.ts'

t.setTimeout(120_000)

const REFERENCE = fileURLToPath(new URL('../testing/paddle_reference.py', import.meta.url))
const LOAD = `exec(open(${python(REFERENCE)}).read())`

/** Arguments of Python by their names. */
const named = (values: object): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${python(value)}`)
    .join(', ')

/** Maps as a network gives them: slanted lines of text, blots with holes, upright blocks; and noise, as none does. */
const MAPS = {
  lines: `
for _ in range(rng.integers(0, 8)):
    center, extent = rng.uniform(0, [width, height]), rng.uniform([3, 2], [width / 2, 20])
    layer = np.zeros((height, width), np.uint8)
    cv2.fillPoly(layer, [cv2.boxPoints((center, extent, rng.uniform(-90, 90))).astype(np.int32)], 1)
    prob = np.where(layer > 0, rng.uniform(.4, 1) + rng.normal(0, .1, (height, width)), prob)`,
  blots: `
prob = cv2.GaussianBlur(rng.random((height, width)), (0, 0), rng.uniform(1, 4))
prob = (prob - prob.min()) / (prob.max() - prob.min() + 1e-9)`,
  blocks: `
for _ in range(rng.integers(0, 10)):
    x, y = rng.integers(0, width), rng.integers(0, height)
    prob[y:y + rng.integers(1, 20), x:x + rng.integers(1, 80)] = rng.uniform(.3, 1)`,
  noise: 'prob = rng.random((height, width))',
}

/** The numbers of each box, as a text. */
const eights = (values: readonly number[]): string[] =>
  Array.from({ length: values.length / 8 }, (_, i) => values.slice(8 * i, 8 * i + 8).join())

const drawMap = (dice: Dice, kind: keyof typeof MAPS): string => `
rng = np.random.default_rng(${dice.int(0, 2 ** 31)})
height, width = ${dice.int(8, 300)}, ${dice.int(8, 300)}
prob = rng.random((height, width)) * 0.2
${MAPS[kind]}
prob = prob.astype('float32')
${LOAD}`

await t.test('boxes of a map', { skip: WITHOUT_PYTHON }, async (t) => {
  const numpy = startNumpy(t, TEST_PYTHON ?? '')
  const dice = createDice()
  for (const [kind, share] of [
    ['lines', 0.03],
    ['blots', 0.02],
    ['blocks', 0.02],
    ['noise', 0.02],
  ] as const) {
    await t.test(`of ${kind} are those of PaddleOCR`, async (t) => {
      const counts = { boxes: 0, differ: 0 }
      for (const _ of times(40)) {
        const options = {
          threshold: dice.pick(0.3, 0.5),
          boxThreshold: dice.pick(0.3, 0.5, 0.6),
          unclipRatio: dice.pick(1.5, 1.6, 2),
          dilate: dice.isTrue(),
          maxBoxes: dice.pick(1000, 1000, 5),
        }
        const size = [dice.int(20, 900), dice.int(20, 900)]
        const [map, boxes, scores] = await numpy(
          `(prob, *probability_boxes(prob, ${python(size)}, ${named(options)}))`,
          [],
          drawMap(dice, kind),
        )
        if (map === undefined) throw new Error('no map')
        const inputs = [{ ...map, name: 'map' }, numberTensor('size', 'INT64', [2], size)]
        const given = new Map(inputs.map((one) => [one.name, one]))
        const [got, means] = await openProbabilityBoxes(options).run(given)
        if (got === undefined || boxes === undefined) throw new Error('no boxes')
        const [some, others] = [eights(numbersOf(got)), eights(numbersOf(boxes))]
        const wanted = new Set(others)
        counts.boxes += others.length
        counts.differ += Math.abs(others.length - some.length)
        counts.differ += some.filter((box) => !wanted.has(box)).length
        if (some.join() === others.join()) {
          equalTensors(t, means, scores, JSON.stringify(options), { absolute: 0.03 })
        }
      }
      t.comment(JSON.stringify(counts))
      t.ok(counts.boxes > 50, 'there are boxes')
      t.ok(counts.differ <= share * counts.boxes, JSON.stringify(counts))
    })
  }
})

/** Convex quadrilaterals in and partly out of a picture. */
const drawBoxes = (dice: Dice): number[] => {
  return Array.from({ length: dice.int(0, 6) }, () => {
    const [x, y, angle] = [dice.float(0, 120), dice.float(0, 90), dice.float(-1, 1)]
    const [width, height] = [dice.float(6, 80), dice.float(6, 50)]
    const corners = [-1, -1, 1, -1, 1, 1, -1, 1]
    return [0, 1, 2, 3].flatMap((i) => {
      const u = ((corners[2 * i] ?? 0) * width) / 2 + dice.float(-1, 1)
      const v = ((corners[2 * i + 1] ?? 0) * height) / 2 + dice.float(-1, 1)
      return [
        x + u * Math.cos(angle) - v * Math.sin(angle),
        y + u * Math.sin(angle) + v * Math.cos(angle),
      ]
    })
  }).flat()
}

await t.test('rotated crops are those of PaddleOCR', { skip: WITHOUT_PYTHON }, async (t) => {
  const run = await openBuiltins(t)
  const numpy = startNumpy(t, TEST_PYTHON ?? '')
  await compareWithNumpy(
    t,
    { run, numpy },
    'cropRotated',
    (dice) => {
      const datatype = dice.pick('UINT8', 'FP32')
      const options = {
        height: dice.pick(16, 48, 33),
        minWidth: dice.int(1, 200),
        maxWidth: dice.pick(200, 400),
        pad: datatype === 'FP32' ? 127.5 : dice.int(0, 255),
        datatype,
      }
      const turnFrom = dice.isTrue() ? undefined : 1.5
      const image = dice.tensor('image', 'UINT8', [
        dice.int(1, 90),
        dice.int(1, 120),
        dice.pick(1, 3, 4),
      ])
      const corners = drawBoxes(dice)
      const count = corners.length / 8
      const boxes = numberTensor('boxes', 'FP32', [count, 4, 2], corners)
      const turned = dice.isTrue() ? [dice.tensor('turned', 'BOOL', [count])] : []
      const other = {
        ...options,
        turnFrom,
        datatype: datatype.toLowerCase().replace('fp', 'float'),
      }
      return {
        options: { ...options, ...(turnFrom === undefined ? {} : { turnFrom }) },
        inputs: [image, boxes, ...turned],
        setup: LOAD,
        expression: `crop_rotated(image, boxes, ${turned.length > 0 ? 'turned' : `[False] * ${count}`}, ${named(other)})`,
        // Noise, at positions that are rounded to 1/32 of a pixel from sums in another order.
        tolerance: { absolute: 2, share: 0.005 },
      }
    },
    25,
  )
})

const picture = numberTensor(
  'image',
  'UINT8',
  [4, 4, 1],
  Array.from({ length: 16 }, (_, i) => i),
)
const boxOf = (...corners: number[]) => numberTensor('boxes', 'FP32', [1, 4, 2], corners)
const square = boxOf(0, 0, 4, 0, 4, 4, 0, 4)
const crop = { name: 'cropRotated', height: 4, minWidth: 4 }

await t.test('boxes that cannot be cut out are refused, each by its number', async (t) => {
  const run = await openBuiltins(t)
  const refused = async (
    given: object,
    boxes: typeof square,
    message: string | RegExp,
  ): Promise<void> => {
    await t.rejects(run(t, { ...crop, ...given }, [picture, boxes]), {
      reason: 'INVALID_REQUEST',
      message,
    })
  }
  await refused(
    {},
    boxOf(0, 0, 0.5, 0, 0.5, 4, 0, 4),
    'input "boxes": box 0 of 0.5 x 4 pixels, want at least 1 x 1',
  )
  await refused(
    {},
    boxOf(0, 0, 4, 4, 8, 8, 2, 2),
    /^input "boxes": box 0 with corners 0, 0, 4, 4, .*, want a quadrilateral$/,
  )
  await refused(
    {},
    boxOf(0, 0, Number.NaN, 0, 4, 4, 0, 4),
    /^input "boxes": box 0 of NaN x .* pixels, want at least 1 x 1$/,
  )
  await refused(
    {},
    boxOf(0, 0, 1e9, 0, 1e9, 1e9, 0, 1e9),
    'input "boxes": 1000000000000000000 pixels in all, want at most 16777216',
  )
  await refused({ maxPixels: 15 }, square, 'input "boxes": 16 pixels in all, want at most 15')
  await refused(
    { minWidth: 5, maxPixels: 16 },
    square,
    'input "boxes": 1 boxes, which makes crops of 20 pixels, want at most 16',
  )
  const turned = numberTensor('turned', 'BOOL', [2], [1, 0])
  await t.rejects(run(t, crop, [picture, square, turned], { turned: [-1] }), {
    reason: 'SHAPE_MISMATCH',
    message: /inputs.turned: got dims \[2\], want extent 1 at axis 0, as boxes has$/,
  })
  await t.rejects(
    run(t, { ...crop, pad: 0.5 }, [picture, square]),
    new Refused([{ path: 'pad', got: '0.5', want: 'a whole number for UINT8' }]),
  )
  await t.rejects(
    run(t, { ...crop, maxWidth: 3 }, [picture, square]),
    new Refused([{ path: 'minWidth', got: '4', want: 'at most maxWidth, 3' }]),
  )
  const [whole, widths] = await run(t, crop, [picture, square])
  equalTensors(t, whole, { ...picture, shape: [1, 4, 4, 1] }, 'a square is cut out as it is')
  t.same(numbersOf(widths ?? picture), [4])
})

const map = (...shape: number[]) =>
  numberTensor(
    'map',
    'FP32',
    shape,
    Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 0.5),
  )

await t.test('maps that are none are refused', async (t) => {
  const run = await openBuiltins(t)
  const given = { name: 'probabilityBoxes' }
  const size = numberTensor('size', 'INT64', [2], [9, 9])
  await t.rejects(run(t, given, [map(2, 4, 4), size]), {
    message: /"inputs.map","got":"dims \[2,4,4\]","want":"one map"/,
  })
  await t.rejects(run(t, given, [map(4, 4), numberTensor('size', 'INT64', [2], [0, 5])]), {
    message: 'input "size": [0, 5], want 1 to 16777216 each',
  })
  const [none] = await run(t, given, [map(0, 4), size])
  t.same(none?.shape, [0, 4, 2])
  const [one] = await run(t, given, [map(1, 1, 9, 9), size])
  t.same(numbersOf(one ?? size), [0, 0, 8, 0, 8, 8, 0, 8])
})
