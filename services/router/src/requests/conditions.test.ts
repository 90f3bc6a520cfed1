import type { InferRequest } from '@tutti/tensor'
import { responsesTo } from '@tutti/tensor/testing'
import t from 'tap'
import {
  collect,
  failure,
  floats,
  oneToOne,
  quiet,
  request,
  type ScriptedModel,
  scriptedRouter,
  toFloats,
} from '../testing/index.ts'

const TWO = `
  platform: "onnxruntime_onnx"
  input [ { name: "X" data_type: TYPE_FP32 dims: -1 }, { name: "Z" data_type: TYPE_FP32 dims: 2 } ]
  output { name: "Y" data_type: TYPE_FP32 dims: -1 }`

/** A model that adds a number to each element, and counts its executions. */
function adds(number: number): { readonly model: ScriptedModel; runs: number } {
  const added = {
    runs: 0,
    model: {
      config: oneToOne,
      run: (inputs) => {
        added.runs += 1
        return new Map([
          [
            'Y',
            floats(
              'Y',
              [...(inputs.get('X') ?? [])].map((x) => x + number),
            ),
          ],
        ])
      },
    } satisfies ScriptedModel,
  }
  return added
}

const IO = { inputs: [{ name: 'IN', datatype: 'FP32', shape: [-1] }] }
const OUT = { name: 'OUT', datatype: 'FP32', shape: [-1] }
const model = (name: string, more: object) => ({ name, modelRef: { name }, ...more })

await t.test(
  'a step runs where its condition holds, and is skipped where it does not',
  async (t) => {
    const [small, large] = [adds(0), adds(10)]
    const { router } = await scriptedRouter({
      models: { small: small.model, large: large.model },
      manifests: {
        e: {
          ...IO,
          outputs: [{ ...OUT, firstOf: ['large.Y', 'small.Y'] }],
          steps: [
            model('small', { inputMap: { X: 'IN' } }),
            model('large', {
              inputMap: { X: 'IN' },
              when: 'tensors["small.Y"][0] < 0.8 || ("tier" in parameters && parameters["tier"] == "gold")',
            }),
          ],
        },
      },
    })
    const ask = async (values: readonly number[], o: Partial<InferRequest> = {}) => {
      const [answer] = await collect(
        responsesTo(router.resolve('e', ''), request('IN', values, o), quiet),
      )
      return [...toFloats(answer?.outputs[0]?.data)]
    }
    t.same(await ask([0.5]), [10.5])
    t.same(await ask([1]), [1])
    t.equal(large.runs, 1)
    const context = {
      ...request('IN').context,
      parameters: new Map([['tier', { kind: 'string', value: 'gold' } as const]]),
    }
    t.same(await ask([1], { context }), [11])
    t.equal(small.runs, 3)
    const failed = await failure(
      responsesTo(router.resolve('e', ''), request('IN', [Number.NaN]), quiet),
    )
    t.match(failed, {
      reason: 'CONDITION_FAILED',
      code: 'FAILED_PRECONDITION',
      message: `in ensemble 'e', the condition of step 'large' has no value: tensors["small.Y"][0] is NaN`,
      details: { step: 'large', ensemble: 'e' },
    })
    const many = Array.from({ length: 65 }, () => 0)
    t.match(await failure(responsesTo(router.resolve('e', ''), request('IN', many), quiet)), {
      message: /has the shape \[65\], want at most 64 elements/,
    })
    t.same(router.memory, { count: 0, bytesInUse: 0 })
  },
)

await t.test('a model gets constants, defaults and the parameters of its step', async (t) => {
  const seen: unknown[] = []
  const two: ScriptedModel = {
    config: TWO,
    run: (inputs, { context: { parameters } }) => {
      seen.push(
        [...inputs].map(([name, values]) => [name, [...values]]),
        [...parameters.keys()],
      )
      return new Map([['Y', floats('Y', [1])]])
    },
  }
  const { router } = await scriptedRouter({
    models: { two },
    manifests: {
      e: {
        inputs: [
          ...IO.inputs,
          {
            name: 'MORE',
            datatype: 'FP32',
            shape: [2],
            optional: true,
            default: { datatype: 'FP32', value: [7, 8] },
          },
        ],
        outputs: [{ ...OUT, from: 'b.Y' }],
        steps: [
          model('a', {
            modelRef: { name: 'two' },
            inputMap: { X: 'IN' },
            constants: { Z: { datatype: 'FP32', value: [0.5, 'Infinity'] } },
            parameters: { mode: 'fast' },
          }),
          model('b', { modelRef: { name: 'two' }, inputMap: { X: 'a.Y', Z: 'MORE' } }),
        ],
      },
    },
  })
  await collect(responsesTo(router.resolve('e', ''), request('IN', [3]), quiet))
  t.same(seen, [
    [
      ['X', [3]],
      ['Z', [0.5, Infinity]],
    ],
    ['mode'],
    [
      ['X', [1]],
      ['Z', [7, 8]],
    ],
    [],
  ])
})

await t.test('a constant of a batching model has as many rows as the batch', async (t) => {
  const seen: unknown[] = []
  const batched: ScriptedModel = {
    config: `${TWO} max_batch_size: 8`,
    run: (inputs, { inputs: entries }) => {
      seen.push(
        [...inputs].map(([name, values]) => [name, [...values]]),
        entries.map(({ shape }) => shape),
      )
      return new Map([['Y', { ...floats('Y', [1, 2, 3]), shape: [3, 1] }]])
    },
  }
  const { router } = await scriptedRouter({
    models: { batched },
    manifests: {
      e: {
        ...IO,
        maxBatchSize: 8,
        outputs: [{ ...OUT, from: 'batched.Y' }],
        steps: [
          model('batched', {
            inputMap: { X: 'IN' },
            constants: { Z: { datatype: 'FP32', value: [1, 2] } },
          }),
        ],
      },
    },
  })
  const inputs = [{ ...floats('IN', [1, 2, 3]), shape: [3, 1] }]
  await collect(responsesTo(router.resolve('e', ''), request('IN', [1], { inputs }), quiet))
  t.same(seen, [
    [
      ['X', [1, 2, 3]],
      ['Z', [1, 2, 1, 2, 1, 2]],
    ],
    [
      [3, 1],
      [3, 2],
    ],
  ])
})
