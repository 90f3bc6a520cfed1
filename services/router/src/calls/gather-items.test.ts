import { ServeError } from '@tutti/errors'
import type { NamedTensor, TensorValue } from '@tutti/tensor'
import { floats } from '@tutti/tensor/testing'
import t from 'tap'
import { BATCHING, items, createItemRig as rig, shown } from '../testing/item-rig.ts'

const BROKEN = new ServeError('ENGINE_FAILED', 'it broke')

/** An output of six zeros. */
function y(shape: readonly number[]): NamedTensor {
  return floats(
    'Y',
    Array.from({ length: 6 }, () => 0),
    shape,
  )
}

await t.test('no items run nothing, and give typed empty tensors', async (t) => {
  const one = rig({}, { inputs: [items(0)], wanted: ['Y', 'Z'] })
  t.equal(one.calls.length, 0)
  t.same(shown(one.answer), [
    ['Y', [0, 0, 3], []],
    ['Z', [0, 0], []],
  ])
  const concat = rig(
    { gather: 'Concat', itemDefault: new Map() },
    { inputs: [items(0)], wanted: ['Y', 'Z', 'lengths', 'failed'] },
  )
  t.same(shown(concat.answer), [
    ['Y', [0, 3], []],
    ['Z', [0], []],
    ['lengths', [0], []],
    ['failed', [0], []],
  ])
  t.same([...one.left, ...concat.left], [0, 0, 0, 0, 0, 0, 0, 0])
})

await t.test('an item that fails has its default, where there is one', async (t) => {
  const data = new Uint8Array(Float32Array.of(-1, -1, -1).buffer)
  const value: TensorValue = { datatype: 'FP32', shape: [1, 3], data }
  const itemDefault = new Map([['Y', value]])
  const one = rig({ itemDefault }, { inputs: [items(2)], wanted: ['Y', 'failed'] })
  t.same(one.calls[0]?.request.requestedOutputs, ['Y'])
  one.calls[0]?.fail(BROKEN, 'maybe')
  t.notOk(one.calls[1]?.signal.aborted)
  one.calls[1]?.answer([floats('Y', [1, 2, 3], [1, 3])])
  t.same(shown(one.answer), [
    ['Y', [2, 1, 3], [-1, -1, -1, 1, 2, 3]],
    ['failed', [2], [1, 0]],
  ])
  const batch = rig(
    { itemDefault },
    { model: BATCHING, inputs: [items(6)], wanted: ['failed', 'Y'] },
  )
  batch.calls[0]?.fail(BROKEN, 'maybe')
  batch.calls[1]?.answer([floats('Y', [1, 2, 3, 4, 5, 6], [2, 1, 3])])
  t.same(shown(batch.answer), [
    ['failed', [6], [1, 1, 1, 1, 0, 0]],
    ['Y', [6, 1, 3], [...Array.from({ length: 12 }, () => -1), 1, 2, 3, 4, 5, 6]],
  ])
  const none = rig({ itemDefault }, { inputs: [items(1)] })
  none.calls[0]?.fail(BROKEN, 'maybe')
  t.same(shown(none.answer), [['Y', [1, 1, 3], [-1, -1, -1]]])
  t.same(
    [...one.left, ...batch.left, ...none.left],
    Array.from({ length: 12 }, () => 0),
  )
})

await t.test('outputs are joined along axis 0, with the length of each', async (t) => {
  const one = rig({ gather: 'Concat' }, { inputs: [items(3)], wanted: ['Y', 'Z', 'lengths'] })
  for (const [i, length] of [2, 0, 1].entries()) {
    const values = Array.from({ length: 3 * length }, () => i)
    one.calls[i]?.answer([floats('Y', values, [length, 3]), floats('Z', values.slice(0, length))])
  }
  t.same(shown(one.answer), [
    ['Y', [3, 3], [0, 0, 0, 0, 0, 0, 2, 2, 2]],
    ['Z', [3], [0, 0, 2]],
    ['lengths', [3], [2, 0, 1]],
  ])
  const batch = rig(
    { gather: 'Concat' },
    { model: BATCHING, inputs: [items(5)], wanted: ['lengths', 'Z'] },
  )
  batch.calls[0]?.answer([floats('Z', [0, 1, 2, 3, 4, 5, 6, 7], [4, 2])])
  batch.calls[1]?.answer([floats('Z', [8, 9, 10], [1, 3])])
  t.same(shown(batch.answer), [
    ['lengths', [5], [2, 2, 2, 2, 3]],
    ['Z', [11], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
  ])
  t.same([...one.left, ...batch.left], [0, 0, 0, 0, 0, 0, 0, 0])
})

await t.test('where nothing but lengths is read, the first output tells', async (t) => {
  const lengths = rig(
    { gather: 'Concat', itemDefault: new Map() },
    { inputs: [items(3)], wanted: ['lengths', 'failed'] },
  )
  t.same(
    lengths.calls.map(({ request }) => request.requestedOutputs),
    [['Y'], ['Y'], ['Y']],
  )
  lengths.calls[0]?.answer([y([2, 3])])
  lengths.calls[1]?.fail(BROKEN, 'maybe')
  lengths.calls[2]?.answer([y([1, 3])])
  t.same(shown(lengths.answer), [
    ['lengths', [3], [2, 0, 1]],
    ['failed', [3], [0, 1, 0]],
  ])
  t.same(lengths.left, [0, 0, 0, 0])
})

await t.test('outputs that do not fit together name the item', async (t) => {
  const two = [items(2)]
  const cases: readonly (readonly [ReturnType<typeof rig>, readonly NamedTensor[][], string])[] = [
    [
      rig({}, { inputs: two }),
      [[y([2, 3])], [y([3, 2])]],
      "step 'read[1]': output 'Y' is FP32[3,2], want FP32[2,3] as read[0] for Stack",
    ],
    [
      rig({}, { inputs: two }),
      [[y([2, 3])], [{ ...y([2, 3]), datatype: 'INT32' }]],
      "step 'read[1]': output 'Y' is INT32[2,3], want FP32[2,3] as read[0] for Stack",
    ],
    [
      rig({ gather: 'Concat' }, { inputs: two }),
      [[y([2, 3])], [y([3, 2])]],
      "step 'read[1]': output 'Y' is FP32[3,2], want FP32[-1,3] as read[0] for Concat",
    ],
    [
      rig({ gather: 'Concat' }, { inputs: two }),
      [[y([])], [y([])]],
      "step 'read[0]': output 'Y' has the shape [], want an axis for Concat",
    ],
    [
      rig({ gather: 'Concat' }, { inputs: two, wanted: ['Y', 'Z', 'lengths'] }),
      [
        [y([2, 3]), floats('Z', [1, 2])],
        [y([2, 3]), floats('Z', [1])],
      ],
      "step 'read[1]': the extents along axis 0 of 'Y' and 'Z' are 2 and 1, want one for Concat",
    ],
    [
      rig({}, { inputs: two }),
      [[floats('Z', [1])], []],
      "step 'read[0]': output 'Y' is absent, want it of every item",
    ],
    [
      rig({}, { model: BATCHING, inputs: two }),
      [[y([1, 2, 3])]],
      "step 'read[0..1]': output 'Y' has 1 rows, want 2 as its inputs",
    ],
  ]
  for (const [one, answers, message] of cases) {
    for (const [i, outputs] of answers.entries()) one.calls[i]?.answer(outputs)
    t.match(one.answer?.error, { reason: 'ITEMS_INVALID', message })
    t.same(one.left, [0, 0, 0, 0])
  }
})
