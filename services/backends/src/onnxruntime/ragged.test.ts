import { buildOnnx, type OnnxSpec } from '@tutti/builtins'
import type { BatchInput } from '@tutti/model-config'
import { elementCount, type StepRequest } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { fp32Declared, writeModelFile } from '../testing/add-model.ts'
import { executeOnce, fp32Tensor, fp32Values } from '../testing/execute.ts'
import { modelConfig, modelSource, stepRequest } from '../testing/model-source.ts'
import { createOnnxEngine } from './onnx-engine.ts'
import { batchInputs, toRaggedRules } from './ragged.ts'

function countUp(shape: readonly number[], first = 0): number[] {
  return Array.from({ length: elementCount(shape) }, (_, i) => first + i)
}

function request(shape: readonly number[], first = 0): StepRequest {
  return stepRequest([fp32Tensor('x', shape, countUp(shape, first))], { batchSize: shape[0] ?? 0 })
}

const SOURCE = { data_type: 'TYPE_INT32', source_input: ['x'], target_name: ['i'] } as const
const RAGGED = modelConfig([fp32Declared('x', [-1])], [fp32Declared('y', [-1])], {
  max_batch_size: 8,
})

function raggedConfig(rest: Partial<typeof RAGGED> = {}): typeof RAGGED {
  const input = RAGGED.input.map((one) => ({ ...one, allow_ragged_batch: true }))
  return { ...RAGGED, input, ...rest }
}

await t.test('batch inputs tell of each request, or of each item', async (t) => {
  const requests = [request([1, 3, 2]), request([2, 1, 5]), request([1, 0, 4])].map((one) => ({
    request: one,
  }))
  const cases: readonly (readonly [BatchInput['kind'], readonly number[], readonly number[]])[] = [
    ['BATCH_ELEMENT_COUNT', [3], [6, 10, 0]],
    ['BATCH_ACCUMULATED_ELEMENT_COUNT', [3], [6, 16, 16]],
    ['BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO', [4], [0, 6, 16, 16]],
    ['BATCH_MAX_ELEMENT_COUNT_AS_SHAPE', [10], countUp([10]).fill(0)],
    ['BATCH_ITEM_SHAPE', [4, 2], [3, 2, 1, 5, 1, 5, 0, 4]],
    ['BATCH_ITEM_SHAPE_FLATTEN', [8], [3, 2, 1, 5, 1, 5, 0, 4]],
  ]
  for (const [kind, dims, values] of cases) {
    for (const [type, View] of [
      ['TYPE_INT32', Int32Array],
      ['TYPE_FP32', Float32Array],
    ] as const) {
      const rules = toRaggedRules(
        raggedConfig({ batch_input: [{ ...SOURCE, kind, data_type: type }] }),
      )
      const [made] = rules === undefined ? [] : batchInputs(rules, requests)
      t.same(made?.name, 'i')
      t.same(made?.dims, dims, kind)
      const [{ data } = { data: new Uint8Array() }] = made?.parts ?? []
      t.same([...new View(data.buffer)], values, `${kind} of ${type}`)
    }
  }
})

/** `y` is -`x`, `ends` is what the batcher makes, `w2` is an ordinary output. */
const SPEC: OnnxSpec = {
  inputs: [
    { name: 'x', type: 'FP32', dims: ['N'] },
    { name: 'w', type: 'FP32', dims: ['B', 1] },
    { name: 'INDEX', type: 'FP32', dims: ['R'] },
  ],
  outputs: [
    { name: 'y', type: 'FP32', dims: ['N'] },
    { name: 'ends', type: 'FP32', dims: ['R', 1] },
    { name: 'w2', type: 'FP32', dims: ['B', 1] },
  ],
  operators: [
    { op: 'Neg', inputs: ['x'], outputs: ['y'] },
    { op: 'Unsqueeze', inputs: ['INDEX', 'axes'], outputs: ['ends'] },
    { op: 'Add', inputs: ['w', 'w'], outputs: ['w2'] },
  ],
  initializers: [
    {
      name: 'axes',
      type: 'INT64',
      dims: [1],
      data: new Uint8Array(new BigInt64Array([1n]).buffer),
    },
  ],
}

const CONFIG = modelConfig(
  [fp32Declared('x', [-1]), fp32Declared('w', [1])],
  [fp32Declared('y', [-1]), fp32Declared('ends', [1]), fp32Declared('w2', [1])],
  {
    max_batch_size: 8,
    batch_input: [
      {
        kind: 'BATCH_ACCUMULATED_ELEMENT_COUNT',
        data_type: 'TYPE_FP32',
        source_input: ['x'],
        target_name: ['INDEX'],
      },
    ],
    batch_output: [
      { kind: 'BATCH_SCATTER_WITH_INPUT_SHAPE', target_name: ['y'], source_input: ['x'] },
    ],
  },
)
const WITH_RAGGED = {
  ...CONFIG,
  input: CONFIG.input.map((one) => ({ ...one, allow_ragged_batch: one.name === 'x' })),
}

async function load(t: Test, config: typeof CONFIG, spec = SPEC) {
  const { directory, remove } = await writeModelFile(buildOnnx(spec))
  t.teardown(remove)
  const model = await createOnnxEngine().load(modelSource(directory, config), { instances: 1 })
  t.teardown(() => model.close())
  return model
}

function wide(shape: readonly number[], first: number, requestedOutputs: readonly string[] = []) {
  const w = fp32Tensor('w', [1, 1], [first])
  const { inputs } = request(shape, first)
  return stepRequest([...inputs, w], { batchSize: 1, requestedOutputs })
}

await t.test('requests of other shapes share a run and get their own part back', async (t) => {
  const model = await load(t, WITH_RAGGED)
  const responses = await executeOnce(model, [
    wide([1, 3], 1),
    wide([1, 1], 10),
    wide([1, 2], 20, ['ends', 'y']),
  ])
  const negative = (response: (typeof responses)[number]) => [
    response.outputs.find(({ name }) => name === 'y')?.shape,
    fp32Values(response, 'y').map((value) => -value),
    fp32Values(response, 'ends'),
    fp32Values(response, 'w2'),
  ]
  t.same(responses.map(negative), [
    [[1, 3], [1, 2, 3], [3], [2]],
    [[1, 1], [10], [4], [20]],
    // The ends add up: all three were one run.
    [[1, 2], [20, 21], [6], []],
  ])
  const [alone] = await executeOnce(model, [wide([1, 2], 5)])
  t.same(alone && negative(alone), [[1, 2], [5, 6], [2], [10]])
})

await t.test('an output with fewer elements than its requests is refused', async (t) => {
  const spec = {
    ...SPEC,
    operators: [
      { op: 'Slice', inputs: ['x', 'zero', 'axes'], outputs: ['y'] },
      ...SPEC.operators.slice(1),
    ],
    initializers: [
      ...(SPEC.initializers ?? []),
      { name: 'zero', type: 'INT64', dims: [1], data: new Uint8Array(8) } as const,
    ],
  }
  const model = await load(t, WITH_RAGGED, spec)
  const responses = await executeOnce(model, [wide([1, 2], 1), wide([1, 3], 1)])
  for (const { error } of responses) {
    t.match(error, {
      reason: 'RESPONSE_INVALID',
      message: "output 'y' of model 'm': shape [1], want 5 elements for the shapes of input 'x'",
    })
  }
})

await t.test('a configuration that the model cannot serve is refused at load', async (t) => {
  const cases: readonly (readonly [Partial<typeof CONFIG>, string])[] = [
    [
      { input: WITH_RAGGED.input.map((one) => ({ ...one, allow_ragged_batch: true })) },
      "unable to load model 'm', configuration expects model provides input with shape [-1]  for ragged input 'w', model provides [-1,1]",
    ],
    [
      { batch_input: [] },
      "unable to load model 'm', configuration expects 2 inputs, model provides 3",
    ],
    [
      { batch_input: CONFIG.batch_input.map((one) => ({ ...one, data_type: 'TYPE_INT32' })) },
      "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'INDEX', model provides TYPE_FP32",
    ],
    [
      { batch_input: CONFIG.batch_input.map((one) => ({ ...one, target_name: ['OTHER'] })) },
      "unexpected inference input 'OTHER', allowed inputs are: x, w, INDEX",
    ],
  ]
  for (const [rest, message] of cases) {
    await t.rejects(load(t, { ...WITH_RAGGED, ...rest }), {
      reason: 'MODEL_LOAD_FAILED',
      code: 'INVALID_ARGUMENT',
      message,
    })
  }
})
