import t from 'tap'
import { completeModelConfig } from '../complete/complete-model-config.ts'
import { normaliseModelConfig } from '../complete/normalise-model-config.ts'
import type { ModelConfig } from '../model/model-config.ts'
import { FACE_ENSEMBLE, OCR_DETECTION, OCR_ENSEMBLE } from '../testing/published-configs.ts'
import { emptyModelConfig, parseModelConfig } from '../text/parse-model-config.ts'
import { validateWhenLoaded, validateWhenRead } from './validate-model-config.ts'

const parse = (text: string) => parseModelConfig(text, 'config.pbtxt')

/** A Python model with these lines added, as far as validation gets it. */
function prepare(text: string, gpuCount?: number) {
  const config = { ...emptyModelConfig('m'), ...parse(`backend: "python" ${text}`), name: 'm' }
  return normaliseModelConfig(config, gpuCount === undefined ? {} : { gpuCount })
}

function validate(config: ModelConfig, directoryName = 'm', gpuCount?: number): void {
  validateWhenRead(config, directoryName)
  validateWhenLoaded(config, gpuCount)
}

await t.test('the published configs are valid', async (t) => {
  for (const text of [FACE_ENSEMBLE, OCR_ENSEMBLE, OCR_DETECTION]) {
    const config = parse(text)
    const completed = completeModelConfig({
      config,
      directoryName: config.name,
      configPath: 'config.pbtxt',
      versionFiles: [],
      autoComplete: true,
    })
    t.doesNotThrow(() => validate(normaliseModelConfig(completed), config.name, 0), config.name)
  }
})

const IO = 'input { name: "x" data_type: TYPE_FP32 '
const OUT = 'output { name: "y" data_type: TYPE_FP32 '
const SOURCE = `${IO}dims: -1 allow_ragged_batch: true } ${OUT}dims: -1 }`

/** Text added to a Python model named m, and Triton's message. */
const REFUSED: readonly (readonly [string, string])[] = [
  ['max_batch_size: -1', "'max_batch_size' must be non-negative value for m"],
  [
    'dynamic_batching { preferred_batch_size: 0 }',
    'dynamic batching preferred size must be positive for m',
  ],
  [
    'max_batch_size: 4 dynamic_batching { preferred_batch_size: [4, 5] }',
    'dynamic batching preferred size must be <= max batch size for m',
  ],
  [
    'dynamic_batching { priority_levels: 2 }',
    'default priority level must be in range [1, 2] for m',
  ],
  [
    'dynamic_batching { priority_levels: 2 default_priority_level: 3 }',
    'default priority level must be in range [1, 2] for m',
  ],
  [
    'dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 } }',
    'priority queue policy must have priority level in range [1, 2] for m',
  ],
  [
    'dynamic_batching { priority_levels: 2 default_priority_level: 1 preserve_ordering: true }',
    "Only one priority level is allowed when 'preserve_ordering' is true for m",
  ],
  ['input {}', "model input must specify 'name' for m"],
  ['input { name: "x" }', "model input 'x' must specify 'data_type' for m"],
  [`${IO}}`, "model input 'x' must specify 'dims' for m"],
  [
    `${IO}dims: [2, 0] }`,
    "model input 'x' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
  ],
  [
    `${IO}dims: -2 }`,
    "model input 'x' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
  ],
  [
    `${IO}dims: 1 reshape { shape: 0 } }`,
    "model input 'x' reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension for m",
  ],
  [
    `${IO}dims: 1 reshape {} }`,
    "model input 'x' cannot have empty reshape for non-batching model as scalar tensors are not supported for m",
  ],
  [
    `${IO}dims: [2, 3] reshape { shape: 5 } }`,
    "model input 'x' has different size for dims and reshape for m",
  ],
  [
    `${IO}dims: [-1, 3] reshape { shape: 3 } }`,
    "model input 'x' has different size for dims and reshape for m",
  ],
  [
    `${IO}dims: [2, -1, 6] reshape { shape: [-1, 2, 6] } }`,
    "model input 'x' has different size for dims and reshape for m",
  ],
  [
    `${IO}dims: [-1, -1] reshape { shape: -1 } }`,
    "model input 'x' has different number of variable-size dimensions for dims and reshape for m",
  ],
  [
    `max_batch_size: 2 ${IO}dims: 2 reshape {} }`,
    "model input 'x' has different size for dims and reshape for m",
  ],
  [`${IO}dims: [3, 3] format: FORMAT_NCHW }`, 'model input NHWC/NCHW require 3 dims for m'],
  [
    `${IO}dims: 3 is_shape_tensor: true }`,
    'shape tensors are only supported for TensorRT platform for m',
  ],
  [
    `${IO}dims: 3 is_non_linear_format_io: true }`,
    'Non-linear IO format is only supported for the TensorRT platform for m',
  ],
  ['output {}', "model output must specify 'name' for m"],
  [`${OUT}}`, "model output 'y' must specify 'dims' for m"],
  [
    `${OUT}dims: 3 is_shape_tensor: true }`,
    'shape tensors are only supported for TensorRT platform for m',
  ],
  ['batch_input {}', "unexpected batch input data type 'TYPE_INVALID'"],
  [
    `${SOURCE} batch_input { target_name: "i" data_type: TYPE_FP32 }`,
    "batch input kind 'BATCH_ELEMENT_COUNT' expects 1 source input, got 0 for m",
  ],
  [
    `${SOURCE} batch_input { kind: BATCH_ITEM_SHAPE data_type: TYPE_INT64 source_input: ["x", "x"] }`,
    "batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 2 for m",
  ],
  [
    `${SOURCE} batch_input { data_type: TYPE_INT64 source_input: "q" }`,
    'batch input data type must be TYPE_INT32 or TYPE_FP32 for m',
  ],
  [
    `${SOURCE} batch_input { data_type: TYPE_INT32 source_input: "q" }`,
    "unknown source input name 'q' for m",
  ],
  [
    `${SOURCE} batch_output { target_name: "y" }`,
    "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0 for m",
  ],
  [
    `${SOURCE} batch_output { target_name: "y" source_input: "q" }`,
    "unknown source input name 'q' for m",
  ],
  [
    `${SOURCE} batch_output { target_name: "q" source_input: "x" }`,
    "unknown target output name 'q' for m",
  ],
  [
    `${SOURCE} batch_output { target_name: ["y", "y"] source_input: "x" }`,
    "target output name 'y' can only be specified once for m",
  ],
  [
    `${SOURCE} batch_output { source_input: "x" }`,
    "must specify 'target_name' of a batch output for m",
  ],
  [
    'instance_group { kind: KIND_CPU gpus: 0 }',
    'instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs',
  ],
  [
    'instance_group { kind: KIND_MODEL gpus: 0 }',
    'instance group m_0 of model m has kind KIND_MODEL but specifies one or more GPUs',
  ],
  [
    'response_cache { enable: true } model_transaction_policy { decoupled: true }',
    "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable the response cache.",
  ],
  [
    'response_cache { enable: true } sequence_batching {}',
    'Response Cache does not currently support model m with sequence batching scheduler. Please disable the response cache.',
  ],
  [
    'instance_group { profile: "1" }',
    'instance group m_0 of model m and platform specifies profile field which is only supported for TensorRT models',
  ],
]

await t.test("each broken rule is CONFIG_INVALID with Triton's text", async (t) => {
  for (const [text, message] of REFUSED) {
    t.throws(
      () => validate(prepare(text), 'm', 0),
      { reason: 'CONFIG_INVALID', code: 'INVALID_ARGUMENT', message },
      message,
    )
  }
})

const ACCEPTED = [
  // Measured on 2.51: both load.
  'dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5 } }',
  `${IO}dims: 1 } ${IO}dims: 1 }`,
  `${IO}dims: [2, 4, -1, 6] reshape { shape: [8, -1, 1, 6] } }`,
  `max_batch_size: 2 ${IO}dims: 1 reshape {} }`,
  'dynamic_batching { priority_levels: 2 default_priority_level: 2 priority_queue_policy { key: 1 } }',
  `${IO}dims: [3, 4, 5] format: FORMAT_NHWC }`,
  `${SOURCE} batch_input { target_name: ["i", "j"] data_type: TYPE_INT32 source_input: "x" }`,
  `${SOURCE} batch_output { target_name: "y" source_input: "x" }`,
  // A load says that these have no effect; their inside is not looked at.
  'response_cache { enable: true }',
  'model_metrics { metric_control {} }',
  '',
]

await t.test('what keeps the rules passes', async (t) => {
  for (const text of ACCEPTED) {
    t.doesNotThrow(() => validate(prepare(text)), text)
  }
})

await t.test('platform and backend must fit', async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ['platform: "caffe2"', "unexpected platform type 'caffe2' for m"],
    ['', "must specify 'platform' or 'backend' for 'm'"],
    [
      'platform: "ensemble" backend: "python"',
      "Ensemble model 'm' must have platform type 'ensemble' and empty backend type",
    ],
    [
      'platform: "ensemble"',
      'ensemble scheduling must be set for ensemble m whose platform is ensemble',
    ],
    [
      'platform: "pytorch_libtorch" backend: "onnxruntime"',
      "unexpected 'platform' and 'backend' pair, got:pytorch_libtorch, onnxruntime",
    ],
    ['backend: "onnxruntime"', "unexpected 'platform' and 'backend' pair, got:, onnxruntime"],
  ]
  for (const [text, message] of cases) {
    const config = normaliseModelConfig({ ...parse(text), name: 'm' })
    t.throws(() => validate(config), { reason: 'CONFIG_INVALID', message }, message)
  }
})

await t.test('name, directory and policy are checked on what normalisation left', async (t) => {
  const config = prepare('')
  const { version_policy: _, ...unversioned } = config
  const cases = [
    { config: { ...config, name: '' }, message: "model configuration must specify 'name'" },
    { config: unversioned, message: "must specify 'version policy' for m" },
    {
      config: { ...config, name: 'other' },
      message:
        "unexpected directory name 'm' for model 'other', directory name must equal model name",
    },
  ]
  for (const { config: bad, message } of cases) {
    t.throws(() => validateWhenRead(bad, 'm'), { reason: 'CONFIG_INVALID', message }, message)
  }
})

await t.test('a GPU that is not there is DEVICE_UNAVAILABLE', async (t) => {
  const noGpu = prepare('instance_group { kind: KIND_GPU }')
  t.throws(() => validateWhenLoaded(noGpu, 0), {
    reason: 'DEVICE_UNAVAILABLE',
    message: 'instance group m_0 of model m has kind KIND_GPU but no GPUs are available',
    details: { field: 'instance_group.kind' },
  })
  t.throws(() => validateWhenLoaded(noGpu, 0, 'no CUDA driver'), {
    message:
      'instance group m_0 of model m has kind KIND_GPU but no GPUs are available (no CUDA driver)',
  })
  t.throws(() => validateWhenLoaded(prepare('instance_group { kind: KIND_GPU gpus: 2 }', 2), 2), {
    reason: 'DEVICE_UNAVAILABLE',
    message:
      'instance group m_0 of model m specifies invalid or unsupported gpu id 2. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: 0, 1',
    details: { field: 'instance_group' },
  })
  t.doesNotThrow(() => validateWhenLoaded(noGpu), 'rules about unknown hardware are left out')
  t.doesNotThrow(() => validateWhenLoaded(prepare('instance_group { kind: KIND_GPU }', 1), 1))
})

await t.test('instance groups that were not normalised are refused', async (t) => {
  const raw = { ...parse('backend: "python"'), name: 'm' }
  t.throws(() => validateWhenLoaded(raw), {
    reason: 'CONFIG_INVALID',
    message: "must specify one or more 'instance group's for m",
  })
  const auto = parse('name: "m" backend: "python" instance_group { name: "g" }')
  t.throws(() => validateWhenLoaded(auto), {
    message: 'instance group g of model m has unexpected kind KIND_AUTO',
  })
  const bare = parse('name: "m" instance_group { name: "g" kind: KIND_GPU }')
  t.throws(() => validateWhenLoaded(bare, 1), {
    message: 'instance group g of model m has kind KIND_GPU but specifies no GPUs',
  })
})

function plan(text: string) {
  return { ...prepare(text), backend: 'tensorrt', platform: 'tensorrt_plan' }
}

await t.test('a TensorRT model may have what only TensorRT has', async (t) => {
  const shaped = `${IO}dims: [1, 2, 3] is_shape_tensor: true is_non_linear_format_io: true }`
  t.doesNotThrow(() => validate(plan(shaped)))
  t.doesNotThrow(() => validateWhenLoaded(plan('instance_group { profile: "0" }')))
})
