import { ServeError } from '@tutti/errors'
import type { PlanLoop } from '@tutti/graph'
import { floats, toFloats } from '@tutti/tensor/testing'
import t from 'tap'
import { createRepeatRig, type RepeatedCall, type RepeatRigOptions } from '../testing/repeat-rig.ts'
import { withLoop } from './looped-call.ts'

const BROKEN = new ServeError('ENGINE_FAILED', 'it broke')
const LOOP: PlanLoop = {
  carry: [{ input: 'X', output: 'NEXT' }],
  until: undefined,
  reads: [],
  maxIterations: 3,
}
const MODEL = `
  input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] }
  input { name: "B" data_type: TYPE_FP32 dims: [ 1 ] }
  output { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] }
  output { name: "NEXT" data_type: TYPE_FP32 dims: [ -1 ] }
  output { name: "DELTA" data_type: TYPE_FP32 dims: [ 1 ] }`

/** Ends where the tensor `delta` is below 0.5. */
const until: PlanLoop['until'] = {
  tensors: ['delta'],
  evaluate: ({ tensors }) => {
    const delta = tensors.get('delta')?.[0]
    if (typeof delta !== 'number') throw new Error('the tensor "delta" is absent')
    return delta < 0.5
  },
}

function rig(loop: Partial<PlanLoop>, o: Partial<Omit<RepeatRigOptions, 'wrap'>> = {}) {
  const wrap: RepeatRigOptions['wrap'] = (next) => withLoop({ ...LOOP, ...loop }, next)
  const inputs = [floats('X', [0, 0]), floats('B', [7])]
  return createRepeatRig({ model: MODEL, inputs, ...o, wrap })
}

/** Answers with the number of the iteration, which the next one gets. */
function answer({ answer: send }: RepeatedCall | undefined = never, value: number, delta = 1) {
  send([floats('Y', [value]), floats('NEXT', [value, value]), floats('DELTA', [delta])])
}
const never: RepeatedCall = {
  part: undefined,
  get request(): never {
    throw new Error('no such call')
  },
  get signal(): never {
    throw new Error('no such call')
  },
  answer: () => {
    throw new Error('no such call')
  },
  fail: () => {
    throw new Error('no such call')
  },
}

await t.test('an iteration gets what the one before made, and the last one answers', async (t) => {
  const one = rig({})
  for (const value of [1, 2, 3]) {
    t.equal(one.calls.length, value, 'one at a time')
    answer(one.calls[value - 1], value)
  }
  t.equal(one.calls.length, 3)
  t.same(
    one.answer?.outputs.map(({ name, data }) => [name, ...toFloats(data)]),
    [['Y', 3]],
  )
  t.match(one.answer, { index: 0, final: true, times: { queueNs: 3 } })
  t.same(one.left, [0, 0, 0, 0])
})

await t.test(
  'what is carried and read is asked for, and only what is wanted is given',
  async (t) => {
    const seen: unknown[] = []
    const act = (call: RepeatedCall) => {
      const { inputs, requestedOutputs } = call.request
      seen.push([
        call.part,
        requestedOutputs,
        inputs.map(({ name, data }) => [name, ...toFloats(data)]),
      ])
      answer(call, seen.length, seen.length === 2 ? 0 : 1)
    }
    const one = rig({ until, reads: [{ name: 'delta', output: 'DELTA' }] }, { act })
    const asked = ['Y', 'NEXT', 'DELTA']
    t.same(seen, [
      [
        '1',
        asked,
        [
          ['X', 0, 0],
          ['B', 7],
        ],
      ],
      [
        '2',
        asked,
        [
          ['B', 7],
          ['X', 1, 1],
        ],
      ],
    ])
    t.same(
      one.answer?.outputs.map(({ name }) => name),
      ['Y'],
    )
    t.same(one.left, [0, 0, 0, 0])
  },
)

await t.test('a condition reads other tensors too', async (t) => {
  const controls = [floats('delta', [0])]
  const one = rig({ until }, { controls })
  answer(one.calls[0], 1)
  t.equal(one.calls.length, 1)
  t.equal(one.answer?.error, undefined)
})

await t.test('many iterations that answer at once do not nest', async (t) => {
  let calls = 0
  const act = (call: RepeatedCall) => answer(call, ++calls)
  const one = rig({ maxIterations: 10_000 }, { act })
  t.same([calls, ...toFloats(one.answer?.outputs[0]?.data)], [10_000, 10_000])
  t.same(one.left, [0, 0, 0, 0])
})

await t.test('an iteration that fails, or does not fit, ends it', async (t) => {
  const failed = rig({})
  answer(failed.calls[0], 1)
  failed.calls[1]?.fail(BROKEN, 'no')
  t.match(failed.answer, {
    error: {
      reason: 'ENGINE_FAILED',
      message: "step 'read', iteration 2: it broke",
      details: { item: '2' },
    },
    times: { queueNs: 2 },
  })
  const absent = rig({})
  absent.calls[0]?.answer([floats('Y', [1])])
  t.match(absent.answer?.error, {
    reason: 'ITEMS_INVALID',
    message: "step 'read', iteration 1: output 'NEXT' is absent, want it for 'X'",
  })
  const wide = rig({})
  wide.calls[0]?.answer([floats('NEXT', [1, 2], [1, 2])])
  t.match(wide.answer?.error, {
    reason: 'ITEMS_INVALID',
    message: "step 'read', iteration 1: output 'NEXT' is FP32[1,2], want FP32[-1] as 'X'",
  })
  const undecided = rig({ until })
  answer(undecided.calls[0], 1)
  t.match(undecided.answer?.error, {
    reason: 'CONDITION_FAILED',
    message:
      "step 'read', iteration 1: the condition of step 'read' has no value: the tensor \"delta\" is absent",
  })
  for (const { left } of [failed, absent, wide, undecided]) t.same(left, [0, 0, 0, 0])
})

await t.test('batches are carried with their dimension', async (t) => {
  const inputs = [floats('X', [0, 0], [1, 2])]
  const one = rig({}, { model: `max_batch_size: 4 ${MODEL}`, inputs })
  one.calls[0]?.answer([floats('NEXT', [1, 2], [1, 2])])
  t.same(one.calls[1]?.request.inputs[0]?.shape, [1, 2])
  one.calls[1]?.answer([floats('NEXT', [1, 2], [2])])
  t.match(one.answer?.error, { message: /output 'NEXT' is FP32\[2\], want FP32\[-1,-1\] as 'X'/ })
  t.same(one.left, [0, 0, 0, 0])
})

await t.test('a deadline, or a caller that leaves, ends it', async (t) => {
  const late = rig({}, { remainingMs: 100 })
  answer(late.calls[0], 1)
  late.clock.advance(100)
  t.match(late.answer?.error, { reason: 'DEADLINE_EXCEEDED' })
  t.ok(late.calls[1]?.signal.aborted)
  answer(late.calls[1], 2)
  t.equal(late.answers, 1)
  const left = rig({})
  answer(left.calls[0], 1)
  left.scope.cancel(new ServeError('CANCELLED', 'left'))
  t.match(left.answer?.error, { message: 'left' })
  t.ok(left.calls[1]?.signal.aborted)
  t.same([...late.left, ...left.left], [0, 0, 0, 0, 0, 0, 0, 0])
  t.same([late.counts, left.counts], [{ iterations: 2 }, { iterations: 2 }])
})

await t.test('only what one iteration hands to the next is held', async (t) => {
  const one = rig({ maxIterations: 10 }, { maxBytes: 16 })
  for (let i = 0; i < 10; i++) answer(one.calls[i], i)
  t.equal(one.answer?.error, undefined)
  t.equal(one.bytes.most, 16, 'that of one iteration, and of the next')
  const full = rig({}, { maxBytes: 15 })
  for (let i = 0; i < 2; i++) answer(full.calls[i], i)
  t.match(full.answer?.error, { reason: 'OVERLOADED' })
  t.same([...one.left, ...full.left], [0, 0, 0, 0, 0, 0, 0, 0])
})
