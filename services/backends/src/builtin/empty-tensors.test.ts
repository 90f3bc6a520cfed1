import { type Datatype, type NamedTensor, shapeMatches } from '@tutti/tensor'
import t from 'tap'
import { openBuiltins } from '../testing/builtin-steps.ts'
import { numbersOf, numberTensor } from '../testing/random-tensors.ts'

const none = (name: string, shape: readonly number[], datatype: Datatype = 'FP32'): NamedTensor =>
  numberTensor(name, datatype, shape, [])

/** Built-ins over tensors without elements, as N = 0 items of `forEach` give them, and the shapes of their outputs. */
const CASES: readonly (readonly [
  object,
  readonly NamedTensor[],
  readonly (readonly number[])[],
])[] = [
  [{ name: 'argmax' }, [none('input', [0, 0, 5])], [[0, 0]]],
  [{ name: 'argmax', keepDims: true }, [none('input', [0, 3, 5])], [[0, 3, 1]]],
  [{ name: 'argmax', axis: 0 }, [none('input', [3, 0], 'INT64')], [[0]]],
  [
    { name: 'topK', k: 2 },
    [none('input', [0, 5])],
    [
      [0, 2],
      [0, 2],
    ],
  ],
  [
    { name: 'topK', k: 2, axis: 0 },
    [none('input', [5, 0], 'FP16')],
    [
      [2, 0],
      [2, 0],
    ],
  ],
  [
    { name: 'topK', k: 2, largest: false },
    [none('input', [0, 0, 5], 'INT64')],
    [
      [0, 0, 2],
      [0, 0, 2],
    ],
  ],
  [{ name: 'reduce', op: 'max', axes: [-1] }, [none('input', [0, 3, 5])], [[0, 3]]],
  [{ name: 'reduce', op: 'mean', axes: [0] }, [none('input', [3, 0])], [[0]]],
  [{ name: 'softmax' }, [none('input', [0, 5])], [[0, 5]]],
  [{ name: 'l2Normalise' }, [none('input', [0, 5])], [[0, 5]]],
  [{ name: 'meanPool' }, [none('embeddings', [0, 4, 5]), none('mask', [0, 4])], [[0, 5]]],
  [{ name: 'normalise' }, [none('image', [0, 4, 5, 3])], [[0, 4, 5, 3]]],
  [{ name: 'rotate', degrees: 90 }, [none('image', [0, 4, 5, 3])], [[0, 5, 4, 3]]],
  [{ name: 'convertBoxes', from: 'xyxy', to: 'xywh' }, [none('boxes', [0, 4])], [[0, 4]]],
  [{ name: 'select' }, [none('input', [0, 4]), none('mask', [0], 'BOOL')], [[0, 4]]],
  [{ name: 'take' }, [none('input', [0, 4]), none('indices', [0], 'INT64')], [[0, 4]]],
  [{ name: 'compare', op: 'greater', value: 1 }, [none('input', [0, 4])], [[0, 4]]],
  [{ name: 'slice', index: ':, 1' }, [none('input', [0, 4])], [[0]]],
  [{ name: 'reshape', shape: [0, 2, 2] }, [none('input', [0, 4])], [[0, 2, 2]]],
  [{ name: 'concat', axis: 1 }, [none('input0', [0, 4]), none('input1', [0, 2])], [[0, 6]]],
  [{ name: 'squeeze', axis: 1 }, [none('input', [0, 1])], [[0]]],
  [
    { name: 'ctcGreedy', alphabet: ['a'] },
    [none('indexes', [0, 0], 'INT64'), none('scores', [0, 0])],
    [[0], [0]],
  ],
  [{ name: 'labelLookup', labels: ['a'] }, [none('indexes', [0], 'INT64')], [[0]]],
  [
    { name: 'cropBoxes', width: 4, height: 5 },
    [numberTensor('image', 'UINT8', [1, 1, 3], [1, 2, 3]), none('boxes', [0, 4])],
    [[0, 5, 4, 3], [0]],
  ],
  [
    { name: 'cropRotated', height: 4, minWidth: 5 },
    [numberTensor('image', 'UINT8', [1, 1, 3], [1, 2, 3]), none('boxes', [0, 4, 2])],
    [[0, 4, 5, 3], [0]],
  ],
  [{ name: 'nms' }, [none('boxes', [0, 4]), none('scores', [0])], [[0, 4], [0], [0], [0], [1]]],
]

await t.test('tensors without elements go in, and the right ones come out', async (t) => {
  const run = await openBuiltins(t)
  for (const [given, inputs, shapes] of CASES) {
    const open = Object.fromEntries(inputs.map(({ name, shape }) => [name, shape.map(() => -1)]))
    const outputs = await run(t, given, inputs, open)
    t.same(
      outputs.map(({ shape }) => shape),
      shapes,
      JSON.stringify(given),
    )
  }
})

await t.test('a sum of no elements is 0', async (t) => {
  const run = await openBuiltins(t)
  const [sum] = await run(t, { name: 'reduce', op: 'sum' }, [none('input', [0], 'INT32')])
  t.ok(shapeMatches([1], sum?.shape ?? []))
  t.same(sum && numbersOf(sum), [0])
})
