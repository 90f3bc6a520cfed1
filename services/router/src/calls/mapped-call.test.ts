import { ServeError } from '@tutti/errors'
import type { PlanForEach } from '@tutti/graph'
import type { TensorValue } from '@tutti/tensor'
import { floats, toFloats } from '@tutti/tensor/testing'
import t from 'tap'
import {
  BATCHING,
  begins,
  decoded,
  integers,
  items,
  createItemRig as rig,
  shown,
  texts,
} from '../testing/item-rig.ts'
import type { RepeatedCall } from '../testing/repeat-rig.ts'

const BROKEN = new ServeError('ENGINE_FAILED', 'it broke')

/** Answers at once. */
function act(call: RepeatedCall): void {
  call.answer([floats('Y', [1, 1, 1], [1, 3])])
}

await t.test('each item is one call, gathered in the order of the items', async (t) => {
  const { calls, inputs } = rig({}, { inputs: [items(3), floats('B', [7])] })
  t.same(begins(calls), [0, 1, 2])
  t.same(
    calls.map(({ part, request }) => [part, request.inputs.map(({ shape }) => shape)]),
    [0, 1, 2].map((i) => [String(i), [[2], [1]]]),
  )
  for (const { request } of calls) {
    const [x, b] = request.inputs
    t.equal(x?.data.buffer, inputs[0]?.data.buffer, 'an item is a view')
    t.equal(b?.data, inputs[1]?.data, 'what is the same for every item is not copied')
  }
})

await t.test('answers come in any order', async (t) => {
  const one = rig({}, { inputs: [items(3)] })
  for (const i of [2, 0, 1]) one.calls[i]?.answer([floats('Y', [i, i, i], [1, 3])])
  t.same(shown(one.answer), [['Y', [3, 1, 3], [0, 0, 0, 1, 1, 1, 2, 2, 2]]])
  t.match(one.answer, { index: 0, final: true, times: { queueNs: 3, computeInferNs: 3 } })
  t.same(one.left, [0, 0, 0, 0])
  one.calls[0]?.answer([floats('Y', [9, 9, 9], [1, 3])])
  t.equal(one.answers, 1, 'what comes twice is dropped')
})

/** The memory that a tensor views. */
function bufferOf(tensor: RepeatedCall['request']['inputs'][number] | undefined) {
  return tensor?.data.buffer
}

await t.test('a model that batches gets batches, which are views', async (t) => {
  const bias = texts('B', ['ab'], [1])
  const one = rig({}, { model: BATCHING, inputs: [items(10), bias] })
  t.same(
    one.calls.map(({ part }) => part),
    ['0..3', '4..7', '8..9'],
  )
  t.same(
    one.calls.map(({ request }) => request.inputs.map(({ shape }) => shape)),
    [
      [
        [4, 2],
        [4, 1],
      ],
      [
        [4, 2],
        [4, 1],
      ],
      [
        [2, 2],
        [2, 1],
      ],
    ],
  )
  const [x] = one.inputs
  const biases = one.calls.map(({ request }) => request.inputs[1])
  t.ok(one.calls.every(({ request }) => bufferOf(request.inputs[0]) === bufferOf(x)))
  t.ok(biases.every((tensor) => bufferOf(tensor) === bufferOf(biases[0])))
  t.same(biases[2]?.data, texts('B', ['ab', 'ab'], [2]).data)
  t.equal(one.bytes.held, 4 * 6, 'what is repeated for the rows counts')
  for (const [i, { request, answer }] of one.calls.entries()) {
    const rows = request.inputs[0]?.shape[0] ?? 0
    answer([floats('Y', Array(3 * rows).fill(i), [rows, 1, 3])])
  }
  const [y] = one.answer?.outputs ?? []
  t.same(y?.shape, [10, 1, 3])
  t.same(
    [...toFloats(y?.data)].filter((_, i) => i % 3 === 0),
    [0, 0, 0, 0, 1, 1, 1, 1, 2, 2],
  )
  t.same(one.left, [0, 0, 0, 0])
})

await t.test('one call of all items is given on without a copy', async (t) => {
  const one = rig({}, { model: BATCHING, inputs: [items(2)] })
  const y = floats('Y', [1, 2, 3, 4, 5, 6], [2, 1, 3])
  one.calls[0]?.answer([y], true)
  t.equal(one.answer?.outputs[0]?.data, y.data)
  const lent = rig({}, { model: BATCHING, inputs: [items(2)] })
  lent.calls[0]?.answer([y])
  t.same(shown(lent.answer), [['Y', [2, 1, 3], [1, 2, 3, 4, 5, 6]]])
  t.same([...one.left, ...lent.left], [0, 0, 0, 0, 0, 0, 0, 0])
})

await t.test('rows of texts are cut and gathered by their elements', async (t) => {
  const words = texts('X', ['a', 'bcd', '', 'efgh', 'ij', 'k'], [3, 2])
  const one = rig({}, { inputs: [words] })
  t.same(
    one.calls.map(({ request }) => decoded(request.inputs[0] ?? words)),
    [
      ['a', 'bcd'],
      ['', 'efgh'],
      ['ij', 'k'],
    ].map((pair) => decoded(texts('', pair, [2]))),
  )
  for (const { request, answer } of one.calls)
    answer([{ ...(request.inputs[0] ?? words), name: 'Y' }])
  t.match(one.answer?.outputs, [{ datatype: 'BYTES', shape: [3, 2], data: words.data }])
  const empty = rig({}, { inputs: [texts('X', [], [2, 0])] })
  t.same(
    empty.calls.map(({ request }) => request.inputs[0]?.data.byteLength),
    [0, 0],
  )
  const batched = rig(
    { count: 'n' },
    { model: BATCHING, inputs: [words], controls: [integers('n', 2)] },
  )
  t.equal(
    decoded(batched.calls[0]?.request.inputs[0] ?? words),
    decoded(texts('', ['a', 'bcd', '', 'efgh'], [])),
  )
})

await t.test('only the first `count` items are real', async (t) => {
  for (const [count, datatype] of [
    [2, 'INT64'],
    [0, 'INT32'],
    [3, 'INT32'],
  ] as const) {
    const one = rig(
      { count: 'n' },
      { inputs: [items(3)], controls: [integers('n', count, datatype)] },
    )
    t.equal(one.calls.length, count)
  }
})

/** Three items, of which so many are real. */
function n(value: number) {
  return { controls: [integers('n', value)], inputs: [items(3)] }
}

await t.test('numbers that do not fit are refused, and nothing runs', async (t) => {
  const cases: readonly (readonly [Partial<PlanForEach>, Parameters<typeof rig>[1], string])[] = [
    [{ maxItems: 2 }, { inputs: [items(3)] }, 'got 3 items, want at most 2 (maxItems)'],
    [{ count: 'n' }, n(4), "the count 'n' is 4, want 0 to 3, the number of items"],
    [{ count: 'n' }, n(-1), "the count 'n' is -1, want 0 to 3, the number of items"],
    [{ count: 'n' }, { inputs: [items(3)] }, "the count 'n' is absent, want it"],
    [
      { count: 'n' },
      { inputs: [items(3)], controls: [{ ...items(1), name: 'n' }] },
      "the count 'n' has the shape [1,2], want one integer",
    ],
    [
      { count: 'n' },
      { inputs: [items(3)], controls: [floats('n', [1.5])] },
      "the count 'n' is 1.5, want 0 to 3, the number of items",
    ],
    [
      { items: ['X', 'W'] },
      { inputs: [items(3), items(4, 'W')] },
      "got 3 items in 'X' and 4 in 'W', want as many in both",
    ],
    [
      {},
      { inputs: [floats('X', [1], [])] },
      "the input 'X' has the shape [], want a dimension of items",
    ],
  ]
  for (const [forEach, o, text] of cases) {
    const one = rig(forEach, o)
    t.match(one.answer?.error, { reason: 'ITEMS_INVALID', message: `step 'read': ${text}` })
    t.equal(one.calls.length, 0)
    t.same(one.left, [0, 0, 0, 0])
    t.same(one.counts, {})
  }
  const most = rig({ maxItems: 3 }, { inputs: [items(3)] })
  t.equal(most.calls.length, 3, 'as many as maxItems are right')
  const real = rig(
    { maxItems: 3, count: 'n' },
    { inputs: [items(4)], controls: [integers('n', 3)] },
  )
  t.equal(real.calls.length, 3, 'only real items count')
})

await t.test('so many calls are open at a time, and no more', async (t) => {
  const one = rig({ maxParallel: 2 }, { inputs: [items(5)] })
  const open: number[] = []
  for (let i = 0; i < 5; i++) {
    open.push(one.calls.length - i)
    one.calls[i]?.answer([floats('Y', [i, i, i], [1, 3])])
  }
  t.same(open, [2, 2, 2, 2, 1])
  t.same(one.answer?.outputs[0]?.shape, [5, 1, 3])
  t.same(one.left, [0, 0, 0, 0])
})

await t.test('calls that answer at once do not nest', async (t) => {
  const one = rig({ maxItems: 60_000, maxParallel: 1 }, { inputs: [items(60_000)], act })
  t.same(one.answer?.outputs[0]?.shape, [60_000, 1, 3])
})

await t.test('an item that fails ends the step, and cancels the others', async (t) => {
  const one = rig({}, { inputs: [items(3)] })
  one.calls[0]?.answer([floats('Y', [0, 0, 0], [1, 3])])
  one.calls[1]?.fail(BROKEN, 'no')
  t.match(one.answer, {
    error: { reason: 'ENGINE_FAILED', message: "step 'read[1]': it broke", details: { item: '1' } },
    times: { queueNs: 2 },
  })
  t.ok(one.calls[2]?.signal.aborted)
  t.same(one.left, [0, 0, 0, 0])
  one.calls[2]?.answer([floats('Y', [0, 0, 0], [1, 3])])
  t.equal(one.answers, 1)
  t.same(one.left, [0, 0, 0, 0])
  t.same(one.counts, { items: 3, itemCalls: 3, failedItems: 1 })
  const batch = rig({}, { model: BATCHING, inputs: [items(9)] })
  batch.calls[1]?.fail(BROKEN, 'maybe')
  t.match(batch.answer?.error, {
    message: "step 'read[4..7]': it broke",
    details: { item: '4..7' },
  })
  t.same(batch.counts, { items: 9, itemCalls: 3, failedItems: 4 })
})

await t.test('a deadline in the middle ends it', async (t) => {
  const value: TensorValue = { datatype: 'FP32', shape: [1], data: new Uint8Array(4) }
  for (const itemDefault of [undefined, new Map([['Y', value]])]) {
    const one = rig({ itemDefault }, { inputs: [items(3)], remainingMs: 100 })
    one.calls[0]?.answer([floats('Y', [0, 0, 0], [1, 3])])
    one.clock.advance(100)
    t.match(one.answer?.error, { reason: 'DEADLINE_EXCEEDED' })
    t.ok(one.calls[1]?.signal.aborted)
    t.same(one.left, [0, 0, 0, 0])
    const early = rig({ itemDefault }, { inputs: [items(3)], remainingMs: 100 })
    early.clock.advance(99.5)
    early.calls[1]?.fail(new ServeError('DEADLINE_EXCEEDED', 'over'), 'maybe')
    t.match(early.answer?.error, { reason: 'DEADLINE_EXCEEDED', message: 'over' })
    t.same(early.left, [0, 0, 0, 0])
  }
})

await t.test('a caller that leaves ends it', async (t) => {
  const one = rig({ maxParallel: 1 }, { model: BATCHING, inputs: [items(9), floats('B', [1])] })
  one.calls[0]?.answer([floats('Y', [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [4, 1, 3])])
  one.scope.cancel(new ServeError('CANCELLED', 'left'))
  t.match(one.answer?.error, { reason: 'CANCELLED', message: 'left' })
  t.ok(one.calls[1]?.signal.aborted)
  t.equal(one.calls.length, 2)
  t.same(one.left, [0, 0, 0, 0])
})

await t.test('what it holds and gathers is counted before it is made', async (t) => {
  const answer = floats('Y', [0, 0, 0], [1, 3])
  const enough = rig({}, { inputs: [items(2)], maxBytes: 48 })
  for (const { answer: end } of enough.calls) end([answer])
  t.equal(enough.bytes.most, 48, 'two outputs of twelve bytes, and both in one')
  t.equal(enough.answer?.error, undefined)
  for (const [maxBytes, made] of [
    [47, 2],
    [12, 2],
  ] as const) {
    const one = rig({}, { inputs: [items(2)], maxBytes })
    for (const { answer: end } of one.calls.slice(0, made)) end([answer])
    const name = maxBytes === 12 ? "step 'read[1]'" : "step 'read'"
    t.match(one.answer?.error, { reason: 'OVERLOADED', message: `${name}: no memory` })
    t.same(one.left, [0, 0, 0, 0])
  }
  const rows = rig({}, { model: BATCHING, inputs: [items(9), floats('B', [1])], maxBytes: 15 })
  t.equal(rows.calls.length, 0)
  t.match(rows.answer?.error, { reason: 'OVERLOADED', message: "step 'read': no memory" })
  t.same(rows.left, [0, 0, 0, 0])
})
