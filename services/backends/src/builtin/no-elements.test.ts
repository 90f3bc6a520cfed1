// needs: python
import { ServeError } from '@tutti/errors'
import { elementCount, type NamedTensor, type TensorValue } from '@tutti/tensor'
import t from 'tap'
import { openBuiltins, Refused } from '../testing/builtin-steps.ts'
import { startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { equalTensors, numberTensor } from '../testing/random-tensors.ts'

type Shapes = Readonly<Record<string, readonly number[]>>

/** Built-ins, the shapes of their inputs, and the same in NumPy. */
const CASES: readonly (readonly [given: object, shapes: Shapes, expression: string])[] = [
  ...['sum', 'mean', 'max', 'min'].flatMap((op) =>
    [[0], [-1], [0, 1], undefined].flatMap((axes) =>
      [false, true].map((keepDims) => {
        const along = axes === undefined ? 'None' : `(${axes.join(',')},)`
        const keep = keepDims ? 'True' : 'False'
        return [
          { name: 'reduce', op, keepDims, ...(axes && { axes }) },
          { input: [2, 3, 4] },
          `np.atleast_1d(input.${op}(${along}, keepdims=${keep}))`,
        ] as const
      }),
    ),
  ),
  ...[0, 1, -1].flatMap((axis) => [
    [{ name: 'argmax', axis }, { input: [2, 3, 4] }, `np.argmax(input, ${axis})`] as const,
    [
      { name: 'take', axis },
      { input: [2, 3, 4], indices: [1] },
      `np.take(input, indices, ${axis})`,
    ] as const,
    [
      { name: 'positions', axis },
      { input: [2, 3, 4] },
      `np.indices(input.shape)[${axis}]`,
    ] as const,
  ]),
  [{ name: 'argmax' }, { input: [3] }, 'np.atleast_1d(np.argmax(input))'],
  [{ name: 'reduce', op: 'max' }, { input: [3] }, 'np.atleast_1d(input.max())'],
  [
    { name: 'meanPool' },
    { embeddings: [2, 3, 4], mask: [2, 3] },
    '(embeddings * mask[..., None]).sum(-2) / np.maximum(mask.sum(-1)[..., None], 1e-9).astype("float32")',
  ],
  ...['constant', 'edge', 'reflect'].map(
    (mode) =>
      [
        { name: 'pad', mode, widths: [[1, 1]] },
        { input: [2, 3] },
        `np.pad(input, [(0, 0), (1, 1)], '${mode}')`,
      ] as const,
  ),
  [{ name: 'concat' }, { input0: [2, 3], input1: [1, 3] }, 'np.concatenate([input0, input1])'],
  [{ name: 'stack' }, { input0: [2, 3], input1: [2, 3] }, 'np.stack([input0, input1])'],
  [{ name: 'arithmetic', op: 'add' }, { input: [2, 3], other: [1, 3] }, 'input + other'],
  [{ name: 'compare', op: 'less' }, { input: [2, 3], other: [1, 3] }, 'input < other'],
  [{ name: 'shapeOf' }, { input: [2, 3] }, 'np.array(input.shape)'],
  [{ name: 'transpose' }, { input: [2, 3, 4] }, 'np.transpose(input)'],
  [{ name: 'reshape', shape: [-1] }, { input: [2, 3] }, 'np.reshape(input, -1)'],
  [{ name: 'expandDims' }, { input: [2, 3] }, 'np.expand_dims(input, 0)'],
  [{ name: 'slice', index: '1:, ::-1' }, { input: [2, 3] }, 'input[1:, ::-1]'],
  [{ name: 'softmax' }, { input: [2, 3] }, 'np.exp(input) / np.exp(input).sum(-1, keepdims=True)'],
  [
    { name: 'l2Normalise' },
    { input: [2, 3] },
    'input / np.linalg.norm(input, axis=-1, keepdims=True)',
  ],
  [{ name: 'sigmoid' }, { input: [2, 3] }, '1 / (1 + np.exp(-input))'],
  [{ name: 'clip', min: 0 }, { input: [2, 3] }, 'np.clip(input, 0, None)'],
  [{ name: 'cast', datatype: 'INT32' }, { input: [2, 3] }, 'input.astype("int32")'],
]

const ones = (shapes: Shapes): readonly NamedTensor[] =>
  Object.entries(shapes).map(([name, shape]) => {
    const values = Array.from({ length: elementCount(shape) }, () => (name === 'indices' ? 0 : 1))
    return numberTensor(name, name === 'indices' ? 'INT64' : 'FP32', shape, values)
  })

/** The shapes with 0 in place of each extent alone, and of all that two inputs have in common. */
function withNothing(shapes: Shapes): readonly Shapes[] {
  const [[first, shape] = ['', []], ...others] = Object.entries(shapes)
  return shape.flatMap((_, axis) => {
    const alone = { ...shapes, [first]: shape.with(axis, 0) }
    const together = others.map(([name, other]): [string, readonly number[]] => [
      name,
      name !== 'indices' && axis < other.length ? other.with(axis, 0) : other,
    ])
    return [alone, { ...alone, ...Object.fromEntries(together) }]
  })
}

await t.test('no elements give what NumPy gives', { skip: WITHOUT_PYTHON }, async (t) => {
  const run = await openBuiltins(t)
  const numpy = startNumpy(t, TEST_PYTHON ?? '')
  for (const [given, shapes, expression] of CASES) {
    for (const nothing of withNothing(shapes)) {
      const inputs = ones(nothing)
      const text = `${JSON.stringify(given)} of ${JSON.stringify(nothing)}`
      const wanted = await numpy(expression, inputs).catch((): readonly TensorValue[] => [])
      const open = Object.fromEntries(inputs.map(({ name, shape }) => [name, shape.map(() => -1)]))
      for (const declared of [{}, open]) {
        const got = await run(t, given, inputs, declared).catch((error: unknown) => error)
        if (Array.isArray(got)) equalTensors(t, got[0], wanted[0], text)
        else if (wanted.length > 0) t.fail(text, { got })
        else if (got instanceof ServeError) t.equal(got.code, 'INVALID_ARGUMENT', text)
        else t.ok(got instanceof Refused, text)
      }
    }
  }
})
