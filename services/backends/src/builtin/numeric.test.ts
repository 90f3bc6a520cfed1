// needs: python
import { DATATYPES, type Datatype, isDatatype, type Shape } from '@tutti/tensor'
import t from 'tap'
import { openBuiltins } from '../testing/builtin-steps.ts'
import { compareWithNumpy, type NumpyCase } from '../testing/compare-with-numpy.ts'
import { type Dice, numpyName, python } from '../testing/dice.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import type { Tolerance } from '../testing/random-tensors.ts'

const NUMERIC = Object.keys(DATATYPES)
  .filter(isDatatype)
  .filter((datatype) => !['BYTES', 'BF16'].includes(datatype))
const FLOATS = ['FP16', 'FP32', 'FP64'] as const
const HALF: Tolerance = { relative: 1.5e-3, absolute: 1e-3 }

/** The statement that makes FP16 wide, as built-ins compute it. */
const WIDE = 'x = input.astype(np.float32) if input.dtype == np.float16 else input'

const within = (datatype: Datatype, tolerance: Tolerance = {}): { tolerance: Tolerance } => {
  return { tolerance: datatype === 'FP16' ? HALF : tolerance }
}

/** Extents that broadcast against others. */
const broadcastable = (dice: Dice, shape: Shape): number[] =>
  shape.slice(dice.int(0, shape.length - 1)).map((extent) => (dice.isTrue() ? extent : 1))

/** A number of the datatype of the input, as Python writes it. */
const typed = (value?: number): string =>
  value === undefined ? 'None' : `input.dtype.type(${value})`

const CASES: Readonly<Record<string, (dice: Dice, count: number) => NumpyCase>> = {
  softmax: (dice) => {
    const input = dice.tensor('input', dice.pick(...FLOATS), dice.shape(1, 4))
    const axis = dice.axis(input.shape.length)
    const setup = `${WIDE}\ne = np.exp(x - x.max(${axis}, keepdims=True))`
    const expression = `(e / e.sum(${axis}, keepdims=True)).astype(input.dtype)`
    const tolerance = { relative: 2e-6, absolute: 1e-7 }
    return {
      options: { axis },
      inputs: [input],
      setup,
      expression,
      ...within(input.datatype, tolerance),
    }
  },
  sigmoid: (dice) => {
    const input = dice.tensor('input', dice.pick(...FLOATS), dice.shape(1, 4, 0), {
      least: -20,
      most: 20,
    })
    const expression = '(1 / (1 + np.exp(-x))).astype(input.dtype)'
    return {
      inputs: [input],
      setup: WIDE,
      expression,
      ...within(input.datatype, { absolute: 1e-6 }),
    }
  },
  cast: (dice) => {
    const [from, datatype] = [dice.pick(...NUMERIC), dice.pick(...NUMERIC)]
    const bounds =
      from.startsWith('FP') && datatype.startsWith('U') ? { least: 0, most: 200 } : undefined
    const input = dice.tensor('input', from, dice.shape(1, 4, 0), bounds)
    const canRound = from.startsWith('FP') && /INT/.test(datatype)
    const rounding = canRound ? dice.pick('truncate', 'nearest') : 'truncate'
    const expression = rounding === 'nearest' ? 'np.rint(input)' : 'input'
    return {
      options: { datatype, rounding },
      inputs: [input],
      expression: `${expression}.astype('${numpyName(datatype)}')`,
    }
  },
  transpose: (dice) => {
    const input = dice.tensor('input', dice.pick(...NUMERIC), dice.shape(1, 4, 0))
    const places = input.shape.map((_, i) => i)
    const order = places.toSorted(() => dice.float(-1, 1))
    const axes = dice.isTrue()
      ? undefined
      : order.map((axis) => axis - dice.int(0, 1) * places.length)
    return {
      options: { axes },
      inputs: [input],
      expression: `np.transpose(input, ${python(axes)})`,
    }
  },
  reshape: (dice) => {
    const input = dice.tensor('input', dice.pick(...NUMERIC), dice.shape(2, 4))
    const [first = 1, ...rest] = input.shape
    const inferred = dice.pick([-1], [first, -1], [-1, first], [...rest, first])
    const expression = `np.reshape(input, ${python(inferred)})`
    // 0 keeps an extent, which NumPy does not know.
    const shape = inferred.map((extent, i) =>
      extent === input.shape[i] && dice.isTrue() ? 0 : extent,
    )
    return { options: { shape }, inputs: [input], expression }
  },
  squeeze: (dice) => {
    const shape = dice.shape(2, 4, 0)
    const axis = dice.axis(shape.length)
    const input = dice.tensor('input', dice.pick(...NUMERIC), shape.with(axis, 1))
    return { options: { axis }, inputs: [input], expression: `np.squeeze(input, ${axis})` }
  },
  expandDims: (dice) => {
    const input = dice.tensor('input', dice.pick(...NUMERIC), dice.shape(1, 4, 0))
    const axis = dice.axis(input.shape.length + 1)
    return { options: { axis }, inputs: [input], expression: `np.expand_dims(input, ${axis})` }
  },
  slice: (dice) => {
    const input = dice.tensor('input', dice.pick(...NUMERIC), dice.shape(1, 4))
    const part = (extent: number): string => {
      const bound = () => dice.pick('', String(dice.int(-extent - 2, extent + 2)))
      const step = dice.pick('', ':', ':1', ':2', ':-1', ':-3')
      return dice.int(0, 3) === 0
        ? String(dice.int(-extent, extent - 1))
        : `${bound()}:${bound()}${step}`
    }
    const terms = input.shape.map(part)
    const count = dice.int(1, terms.length)
    const index = dice.pick(
      terms.join(', '),
      terms.slice(0, count).join(','),
      ['...', ...terms.slice(count)].join(', '),
      [...terms.slice(0, count), '...'].join(', '),
    )
    return { options: { index }, inputs: [input], expression: `np.atleast_1d(input[${index}])` }
  },
  positions: (dice) => {
    const input = dice.tensor('input', dice.pick(...NUMERIC), dice.shape(1, 4, 0))
    const axis = dice.axis(input.shape.length)
    return { options: { axis }, inputs: [input], expression: `np.indices(input.shape)[${axis}]` }
  },
  shapeOf: (dice) => {
    const input = dice.tensor('input', dice.pick(...NUMERIC), dice.shape(1, 4, 0))
    return { inputs: [input], expression: 'np.array(input.shape)' }
  },
  concat: (dice) => {
    const [datatype, shape] = [dice.pick(...NUMERIC), dice.shape(1, 4, 0)]
    const axis = dice.axis(shape.length)
    const inputs = Array.from({ length: dice.int(1, 4) }, (_, i) =>
      dice.tensor(`input${i}`, datatype, shape.with(axis, dice.int(0, 3))),
    )
    const names = inputs.map(({ name }) => name).join(', ')
    return { options: { axis }, inputs, expression: `np.concatenate([${names}], ${axis})` }
  },
  stack: (dice) => {
    const [datatype, shape] = [dice.pick(...NUMERIC), dice.shape(1, 4, 0)]
    const axis = dice.axis(shape.length + 1)
    const inputs = Array.from({ length: dice.int(1, 4) }, (_, i) =>
      dice.tensor(`input${i}`, datatype, shape),
    )
    const names = inputs.map(({ name }) => name).join(', ')
    return { options: { axis }, inputs, expression: `np.stack([${names}], ${axis})` }
  },
  split: (dice) => {
    const sizes = Array.from({ length: dice.int(1, 4) }, () => dice.int(1, 4))
    const shape = dice.shape(1, 4)
    const axis = dice.axis(shape.length)
    const sum = sizes.reduce((all, size) => all + size, 0)
    const input = dice.tensor('input', dice.pick(...NUMERIC), shape.with(axis, sum))
    const expression = `tuple(np.split(input, np.cumsum(${python(sizes)})[:-1], ${axis}))`
    return { options: { sizes, axis }, inputs: [input], expression }
  },
  pad: (dice) => {
    const numbers = NUMERIC.filter((datatype) => datatype !== 'BOOL')
    const input = dice.tensor('input', dice.pick(...numbers), dice.shape(1, 4))
    const mode = dice.pick('constant', 'edge', 'reflect')
    const widths = input.shape
      .slice(dice.int(0, input.shape.length - 1))
      .map((extent) =>
        [dice.int(0, 3), dice.int(0, 3)].map((w) =>
          mode === 'reflect' ? Math.min(w, extent - 1) : w,
        ),
      )
    const value = mode === 'constant' && dice.isTrue() ? dice.int(0, 9) : undefined
    const all = [...input.shape.slice(widths.length).map(() => [0, 0]), ...widths]
    const extra = mode === 'constant' ? `, constant_values=${value ?? 0}` : ''
    const expression = `np.pad(input, ${python(all)}, '${mode}'${extra})`
    return { options: { widths, mode, value }, inputs: [input], expression }
  },
  argmax: (dice) => {
    const datatype = dice.pick('FP16', 'FP32', 'FP64', 'UINT8', 'INT8', 'INT32', 'INT64')
    // Small, so that some are equal.
    const input = dice.tensor('input', datatype, dice.shape(1, 4), { least: 0, most: 9 })
    const [axis, keepDims] = [dice.axis(input.shape.length), dice.isTrue()]
    const expression = `np.atleast_1d(np.argmax(input, ${axis}, keepdims=${python(keepDims)}))`
    return { options: { axis, keepDims }, inputs: [input], expression }
  },
  topK: (dice) => {
    const datatype = dice.pick('FP16', 'FP32', 'FP64', 'INT32', 'INT64')
    const input = dice.tensor('input', datatype, dice.shape(1, 4), { least: 0, most: 9 })
    const [axis, largest] = [dice.axis(input.shape.length), dice.isTrue()]
    const k = dice.int(1, input.shape.at(axis) ?? 1)
    const setup = `places = np.argsort(${largest ? '-input' : 'input'}, ${axis}, kind='stable').take(range(${k}), ${axis})`
    const expression = `(np.take_along_axis(input, places, ${axis}), places)`
    return { options: { k, axis, largest }, inputs: [input], setup, expression }
  },
  reduce: (dice) => {
    const op = dice.pick('sum', 'mean', 'max', 'min')
    const datatype = dice.pick(...FLOATS, ...(op === 'mean' ? [] : (['INT32', 'INT64'] as const)))
    const input = dice.tensor('input', datatype, dice.shape(1, 4))
    const places = input.shape.map((_, i) => i)
    const some = places.filter(() => dice.isTrue())
    const axes = some.length === 0 ? undefined : some
    const keepDims = dice.isTrue()
    const all = axes === undefined ? 'None' : `(${axes.join(', ')},)`
    const expression = `np.atleast_1d(x.${op}(${all}, keepdims=${python(keepDims)})).astype(input.dtype)`
    const isSum = op === 'sum' || op === 'mean'
    const tolerance = isSum && datatype === 'FP32' ? { absolute: 1e-3 } : { absolute: 1e-9 }
    const half = datatype === 'FP16' && isSum ? { relative: 2e-3, absolute: 2e-2 } : {}
    return {
      options: { op, axes, keepDims },
      inputs: [input],
      setup: WIDE,
      expression,
      tolerance: { ...tolerance, ...half },
    }
  },
  arithmetic: (dice) => {
    const datatype = dice.pick(...FLOATS, 'INT32', 'INT64')
    const ofFloats = datatype.startsWith('FP') ? (['divide', 'power'] as const) : []
    const op = dice.pick('add', 'subtract', 'multiply', 'maximum', 'minimum', ...ofFloats)
    const bounds = { least: 1, most: op === 'power' ? 3 : 100 }
    const input = dice.tensor('input', datatype, dice.shape(1, 4), bounds)
    const other = dice.tensor('other', datatype, broadcastable(dice, input.shape), bounds)
    const value = dice.isTrue() ? dice.int(1, 3) : undefined
    const wide = `(x.astype(np.float32) if x.dtype == np.float16 else x)`
    const widen = `wide = lambda x: ${wide}`
    const second = value === undefined ? 'wide(other)' : `wide(input).dtype.type(${value})`
    return {
      options: { op, value },
      inputs: value === undefined ? [input, other] : [input],
      setup: widen,
      expression: `np.${op}(wide(input), ${second}).astype(input.dtype)`,
      ...within(datatype, op === 'power' ? { relative: 1e-6 } : {}),
    }
  },
  apply: (dice) => {
    const names = [
      'abs',
      'negative',
      'sqrt',
      'exp',
      'log',
      'sin',
      'cos',
      'tanh',
      'floor',
      'ceil',
      'round',
      'sign',
    ] as const
    const name = dice.pick(...names)
    const positive = name === 'sqrt' || name === 'log'
    const bounds = positive ? { least: 0.1, most: 8 } : { least: -8, most: 8 }
    const input = dice.tensor('input', dice.pick(...FLOATS), dice.shape(1, 4, 0), bounds)
    const isSmooth = ['exp', 'log', 'sin', 'cos', 'tanh'].includes(name)
    return {
      options: { function: name },
      inputs: [input],
      setup: WIDE,
      expression: `np.${name}(x).astype(input.dtype)`,
      ...within(input.datatype, isSmooth ? { relative: 2e-6, absolute: 1e-6 } : {}),
    }
  },
  compare: (dice) => {
    const datatype = dice.pick(...NUMERIC.filter((one) => one !== 'BOOL' && one !== 'UINT64'))
    const bounds = { least: 0, most: 4 }
    const input = dice.tensor('input', datatype, dice.shape(1, 4), bounds)
    const other = dice.tensor('other', datatype, broadcastable(dice, input.shape), bounds)
    const names = {
      equal: 'equal',
      notEqual: 'not_equal',
      less: 'less',
      lessEqual: 'less_equal',
      greater: 'greater',
      greaterEqual: 'greater_equal',
    } as const
    const op = dice.pick('equal', 'notEqual', 'less', 'lessEqual', 'greater', 'greaterEqual')
    const value = dice.isTrue() ? dice.int(0, 3) : undefined
    const second = value === undefined ? 'other' : `input.dtype.type(${value})`
    return {
      options: { op, value },
      inputs: value === undefined ? [input, other] : [input],
      expression: `np.${names[op]}(input, ${second})`,
    }
  },
  logical: (dice) => {
    const input = dice.tensor('input', 'BOOL', dice.shape(1, 4))
    const other = dice.tensor('other', 'BOOL', broadcastable(dice, input.shape))
    const op = dice.pick('and', 'or', 'xor', 'not')
    const inputs = op === 'not' ? [input] : [input, other]
    const expression = `np.logical_${op}(${inputs.map(({ name }) => name).join(', ')})`
    return { options: { op }, inputs, expression }
  },
  where: (dice) => {
    const datatype = dice.pick(...NUMERIC.filter((one) => one !== 'BOOL' && one !== 'UINT64'))
    const input = dice.tensor('input', datatype, dice.shape(1, 4))
    const other = dice.tensor('other', datatype, broadcastable(dice, input.shape))
    const condition = dice.tensor('condition', 'BOOL', broadcastable(dice, input.shape))
    const value = dice.isTrue() ? dice.int(0, 3) : undefined
    const second = value === undefined ? 'other' : `input.dtype.type(${value})`
    return {
      options: { value },
      inputs: value === undefined ? [condition, input, other] : [condition, input],
      expression: `np.where(condition, input, ${second})`,
    }
  },
  take: (dice) => {
    const input = dice.tensor('input', dice.pick(...NUMERIC), dice.shape(1, 4))
    const axis = dice.axis(input.shape.length)
    const extent = input.shape.at(axis) ?? 1
    const bounds = { least: -extent, most: extent }
    const indices = dice.tensor('indices', dice.pick('INT32', 'INT64'), dice.shape(1, 2, 0), bounds)
    return {
      options: { axis },
      inputs: [input, indices],
      expression: `np.take(input, indices, ${axis})`,
    }
  },
  select: (dice) => {
    const input = dice.tensor('input', dice.pick(...NUMERIC), dice.shape(1, 4, 0))
    const axis = dice.axis(input.shape.length)
    const mask = dice.tensor('mask', 'BOOL', [input.shape.at(axis) ?? 0])
    return {
      options: { axis },
      inputs: [input, mask],
      expression: `np.compress(mask, input, ${axis})`,
    }
  },
  clip: (dice) => {
    const datatype = dice.pick(...FLOATS, 'UINT8', 'INT8', 'INT32', 'INT64')
    const input = dice.tensor('input', datatype, dice.shape(1, 4, 0))
    const [min, max] = [dice.int(0, 3), dice.int(4, 90)]
    const options = dice.pick({ min }, { max }, { min, max })
    const { min: least, max: most } = { min: undefined, max: undefined, ...options }
    return {
      options,
      inputs: [input],
      expression: `np.clip(input, ${typed(least)}, ${typed(most)})`,
    }
  },
  threshold: (dice) => {
    const datatype = dice.pick('FP32', 'FP64', 'UINT8')
    const types = {
      binary: 'BINARY',
      binaryInverse: 'BINARY_INV',
      truncate: 'TRUNC',
      toZero: 'TOZERO',
      toZeroInverse: 'TOZERO_INV',
    } as const
    const type = dice.pick('binary', 'binaryInverse', 'truncate', 'toZero', 'toZeroInverse')
    const bounds = { least: 0, most: 9 }
    const input = dice.tensor('input', datatype, dice.shape(2, 2), bounds)
    const maxValue = type.startsWith('binary') && dice.isTrue() ? dice.int(1, 200) : undefined
    const threshold = dice.int(0, 9)
    const expression = `cv2.threshold(input, ${threshold}, ${maxValue ?? 1}, cv2.THRESH_${types[type]})[1]`
    return { options: { threshold, type, maxValue }, inputs: [input], expression }
  },
  meanPool: (dice) => {
    const shape = dice.shape(2, 4)
    const embeddings = dice.tensor('embeddings', dice.pick('FP16', 'FP32'), shape)
    const masks = dice.pick('INT64', 'INT32', 'FP32', 'BOOL')
    const mask = dice.tensor('mask', masks, shape.slice(0, -1), {
      least: 0,
      most: masks === 'FP32' ? 1 : 2,
    })
    const setup = 'm = mask.astype(np.float32)[..., None]\nx = embeddings.astype(np.float32)'
    const expression =
      '((x * m).sum(-2) / np.maximum(m.sum(-2), np.float32(1e-9))).astype(embeddings.dtype)'
    const tolerance = { absolute: 1e-4 }
    return {
      inputs: [embeddings, mask],
      setup,
      expression,
      ...within(embeddings.datatype, tolerance),
    }
  },
  l2Normalise: (dice) => {
    const input = dice.tensor('input', dice.pick(...FLOATS), dice.shape(1, 4))
    const axis = dice.axis(input.shape.length)
    const expression = `(x / np.maximum(np.linalg.norm(x, axis=${axis}, keepdims=True), 1e-12)).astype(input.dtype)`
    return {
      options: { axis },
      inputs: [input],
      setup: WIDE,
      expression,
      ...within(input.datatype, { absolute: 1e-6 }),
    }
  },
}

await t.test('numeric built-ins are equal to NumPy', { skip: WITHOUT_PYTHON }, async (t) => {
  const run = await openBuiltins(t)
  const numpy = startNumpy(t, TEST_PYTHON ?? '')
  for (const [name, draw] of Object.entries(CASES)) {
    await t.test(name, (t) => compareWithNumpy(t, { run, numpy }, name, draw))
  }
})
