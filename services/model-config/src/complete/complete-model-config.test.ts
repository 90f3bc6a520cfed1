import t from 'tap'
import { OCR_ENSEMBLE } from '../testing/published-configs.ts'
import { emptyModelConfig, parseModelConfig } from '../text/parse-model-config.ts'
import { type CompletionInput, completeModelConfig } from './complete-model-config.ts'

const INSPECTED = {
  inputs: [{ name: 'x', datatype: 'FP32', dims: [-1, 3, -1] }],
  outputs: [{ name: 'y', datatype: 'BYTES', dims: [-1] }],
  batchable: true,
} as const

function complete(text: string | undefined, o: Partial<CompletionInput> = {}) {
  return completeModelConfig({
    config: text === undefined ? undefined : parseModelConfig(text, 'config.pbtxt'),
    directoryName: 'm',
    configPath: '/models/m/config.pbtxt',
    versionFiles: ['model.onnx'],
    autoComplete: true,
    ...o,
  })
}

await t.test('a model without a configuration is completed from its file', async (t) => {
  const config = complete(undefined, { inspect: INSPECTED })
  t.equal(config.name, 'm')
  t.equal(config.backend, 'onnxruntime')
  t.equal(config.platform, 'onnxruntime_onnx')
  t.equal(config.default_model_filename, 'model.onnx')
  t.equal(config.max_batch_size, 4)
  t.ok(config.dynamic_batching)
  t.same(
    config.input.map(({ name, data_type, dims }) => ({ name, data_type, dims })),
    [{ name: 'x', data_type: 'TYPE_FP32', dims: [3, -1] }],
  )
  t.same(config.output[0]?.dims, [1], 'a scalar per batch item')
  t.same(config.output[0]?.reshape, { shape: [] })
  t.equal(config.output[0]?.data_type, 'TYPE_STRING')
})

await t.test('a model that cannot batch has its full shapes and no scheduler', async (t) => {
  const inspect = {
    inputs: [{ name: 'x', datatype: 'INT64', dims: [2, 3] }],
    outputs: [{ name: 'y', datatype: 'INT64', dims: [] }],
    batchable: false,
  } as const
  const config = complete('', { inspect })
  t.equal(config.max_batch_size, 0)
  t.notOk('dynamic_batching' in config)
  t.same(config.input[0]?.dims, [2, 3])
  t.same(config.output[0]?.dims, [1])
  t.notOk('reshape' in (config.output[0] ?? {}))
  t.throws(() => complete('max_batch_size: 2', { inspect }), {
    reason: 'CONFIG_INVALID',
    message:
      "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified",
  })
})

await t.test('inputs and outputs are completed each on its own', async (t) => {
  const config = complete('input { name: "mine" data_type: TYPE_FP32 dims: [3, -1] }', {
    inspect: INSPECTED,
  })
  t.equal(config.input[0]?.name, 'mine')
  t.equal(config.output[0]?.name, 'y')
})

await t.test('nothing of the model is used where both are declared', async (t) => {
  const text = `input { name: "a" data_type: TYPE_FP32 dims: 1 }
    output { name: "b" data_type: TYPE_FP32 dims: 1 }`
  const config = complete(text, { inspect: INSPECTED })
  t.equal(config.max_batch_size, 0)
  t.notOk('dynamic_batching' in config)
})

await t.test('batch size and scheduler that are given stay', async (t) => {
  t.equal(complete('max_batch_size: 16', { inspect: INSPECTED }).max_batch_size, 16)
  t.notOk('dynamic_batching' in complete('max_batch_size: 1', { inspect: INSPECTED }))
  const sequence = complete('sequence_batching {}', { inspect: INSPECTED })
  t.notOk('dynamic_batching' in sequence)
  t.ok(sequence.sequence_batching)
})

await t.test('what the scheduler of sequences gives and takes is not completed', async (t) => {
  const [input, output] = [INSPECTED.inputs[0], INSPECTED.outputs[0]]
  const inputs = ['x', 'START', 'before'].map((name) => ({ ...input, name }))
  const outputs = ['y', 'after'].map((name) => ({ ...output, name }))
  const text = `sequence_batching {
    control_input { name: "START" control { int32_false_true: [0, 1] } }
    state { input_name: "before" output_name: "after" data_type: TYPE_STRING dims: 1 } }`
  const config = complete(text, { inspect: { inputs, outputs, batchable: true } })
  t.same(
    [...config.input, ...config.output].map(({ name }) => name),
    ['x', 'y'],
  )
})

await t.test('what the batcher makes is not completed', async (t) => {
  const inputs = ['x', 'ends'].map((name) => ({ ...INSPECTED.inputs[0], name }))
  const text = 'batch_input { target_name: "ends" data_type: TYPE_INT32 source_input: "x" }'
  const config = complete(text, { inspect: { ...INSPECTED, inputs } })
  t.same(
    config.input.map(({ name }) => name),
    ['x'],
  )
})

function sized(defaultMaxBatchSize: number) {
  return complete('', { inspect: INSPECTED, defaultMaxBatchSize })
}

await t.test('the default batch size can be set; 0 keeps the model without batching', async (t) => {
  t.equal(sized(32).max_batch_size, 32)
  const none = sized(0)
  t.equal(none.max_batch_size, 0)
  t.same(none.input[0]?.dims, [-1, 3, -1])
  t.equal(sized(-3).max_batch_size, 0)
})

await t.test('auto-completion off leaves all but name and backend', async (t) => {
  const config = complete('', { inspect: INSPECTED, autoComplete: false })
  t.equal(config.name, 'm')
  t.equal(config.backend, 'onnxruntime')
  t.same(config.input, [])
  t.throws(() => complete(undefined, { autoComplete: false }), {
    reason: 'CONFIG_MISSING',
    code: 'NOT_FOUND',
    message: "model configuration is not provided for model 'm'",
  })
})

await t.test('an ensemble is never completed from a file', async (t) => {
  const config = complete(OCR_ENSEMBLE, { inspect: INSPECTED, directoryName: 'ensemble_model' })
  t.same(config, parseModelConfig(OCR_ENSEMBLE, 'config.pbtxt'))
  const bare = complete('platform: "ensemble"', { inspect: INSPECTED })
  t.same(bare, { ...emptyModelConfig('m'), platform: 'ensemble' })
})
