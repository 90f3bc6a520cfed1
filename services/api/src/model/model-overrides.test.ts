import { emptyModelConfig, parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import { parsedModel } from '../testing/manifests.ts'
import {
  applyModelOverrides,
  ModelOverrides,
  toBeyondConfig,
  toConfigOverrides,
  toModelOverrides,
} from './model-overrides.ts'

const WRITTEN = parseModelConfig(
  `platform: "onnxruntime_onnx" max_batch_size: 4
   input { name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 2, 2 ] }
   output { name: "y" data_type: TYPE_FP32 dims: 8 reshape { shape: [ 2, 4 ] } label_filename: "l.txt" }
   instance_group { name: "i" kind: KIND_GPU count: 1 gpus: 1 }
   dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 7 preserve_ordering: true }
   parameters { key: "k" value { string_value: "v" } }`,
  'config.pbtxt',
)

const overridesOf = (spec: Parameters<typeof parsedModel>[1]) =>
  toModelOverrides(parsedModel('m', spec).spec)

await t.test('what a Model does not name stays as the repository has it', async (t) => {
  t.same(applyModelOverrides(WRITTEN, {}), WRITTEN)
  t.same(
    applyModelOverrides(WRITTEN, overridesOf({})),
    WRITTEN,
    'the format is that of the platform',
  )
})

await t.test(
  'overrides are the part of a Model that rules its configuration, as JSON',
  async (t) => {
    const spec = { maxBatchSize: 2, paused: true, scaling: { minReplicas: 2 } }
    const overrides = overridesOf(spec)
    t.same(overrides, { modelFormat: { name: 'onnx' }, maxBatchSize: 2 })
    t.same(ModelOverrides.parse(JSON.parse(JSON.stringify(overrides))), overrides)
    t.throws(() => ModelOverrides.parse({ replicas: 1 }))
  },
)

const apply = (spec: Parameters<typeof parsedModel>[1]) =>
  applyModelOverrides(WRITTEN, overridesOf(spec))

await t.test('each field reaches the configuration', async (t) => {
  t.match(apply({ modelFormat: { name: 'python' } }), { backend: 'python', platform: '' })
  for (const [backend, format, want] of [
    ['identity', 'python', 'identity'],
    ['identity', 'onnx', 'onnxruntime'],
    ['tensorrt', 'python', 'python'],
    ['', 'python', 'python'],
  ] as const) {
    const config = parseModelConfig(`backend: "${backend}"`, 'config.pbtxt')
    const applied = applyModelOverrides(config, { modelFormat: { name: format } })
    t.equal(applied.backend, want, `${backend} as ${format}`)
  }
  t.equal(apply({ maxBatchSize: 0 }).max_batch_size, 0)
  t.same(apply({ versionPolicy: { all: {} } }).version_policy, { all: {} })
  t.same(apply({ versionPolicy: { latest: { numVersions: 2 } } }).version_policy, {
    latest: { num_versions: 2 },
  })
  t.same(apply({ versionPolicy: { specific: { versions: [1, 3] } } }).version_policy, {
    specific: { versions: [1, 3] },
  })
  t.match(apply({ instances: { count: 3 } }).instance_group, [
    { name: 'i', kind: 'KIND_GPU', count: 3, gpus: [1] },
  ])
  t.match(apply({ instances: { count: 3, kind: 'KIND_CPU' } }).instance_group, [
    { name: 'i', kind: 'KIND_CPU', count: 3, gpus: [] },
  ])
  t.match(
    apply({ instances: { count: 3, kind: 'KIND_GPU' } }).instance_group,
    [{ name: 'i', kind: 'KIND_GPU', count: 3, gpus: [] }],
    'all devices of the pod',
  )
  const batching = { maxQueueDelay: '2ms', maxQueueLength: 9 }
  t.match(apply({ batching }).dynamic_batching, {
    preferred_batch_size: [4],
    max_queue_delay_microseconds: 2000,
    preserve_ordering: true,
    default_queue_policy: { max_queue_size: 9, timeout_action: 'REJECT' },
  })
  const inputs = [{ name: 'i', datatype: 'BYTES', shape: [-1] }]
  const warmup = [
    { name: 'w', inputs: inputs.map((input) => ({ ...input, data: 'File', file: 'f' })) },
  ]
  t.same(apply({ warmup }).model_warmup, [
    {
      name: 'w',
      batch_size: 0,
      inputs: { i: { data_type: 'TYPE_STRING', dims: [-1], input_data_file: 'f' } },
      count: 1,
    },
  ])
})

await t.test(
  'an automatic delay is none in the configuration, which has no words for it',
  async (t) => {
    const auto = overridesOf({ batching: { maxQueueDelay: 'auto', preferredBatchSizes: [2] } })
    const said = new Map([
      ['a', auto],
      ['b', overridesOf({ batching: { maxQueueDelay: '2ms' } })],
      ['c', {}],
    ])
    t.same([...toBeyondConfig(said).autoDelays], ['a'])
    t.match(toConfigOverrides(said).get('a')?.(WRITTEN).dynamic_batching, {
      preferred_batch_size: [2],
      max_queue_delay_microseconds: 0,
      preserve_ordering: true,
    })
    for (const [maxQueueDelay, problem] of [
      ['0ms', /got '0ms', want 'auto', or a duration above 0/],
      ['automatic', /want 'auto', or a duration above 0, e.g. 100us/],
    ] as const) {
      const { error } = ModelOverrides.safeParse({ batching: { maxQueueDelay } })
      t.match(error?.issues[0]?.message, problem)
    }
  },
)

await t.test('no batch dimension is told apart from a size that the model says', async (t) => {
  const said = new Map([
    ['a', overridesOf({ maxBatchSize: 0 })],
    ['b', overridesOf({ maxBatchSize: 8 })],
    ['c', {}],
  ])
  t.same([...toBeyondConfig(said).unbatched], ['a'])
})

await t.test('a shared interpreter is none in the configuration', async (t) => {
  const shared = overridesOf({
    modelFormat: { name: 'python' },
    instances: { count: 3, sharedInterpreter: true },
  })
  const alone = overridesOf({ instances: { count: 3, sharedInterpreter: false } })
  const said = new Map([
    ['a', shared],
    ['b', alone],
    ['c', {}],
  ])
  t.same([...toBeyondConfig(said).sharedInterpreters], ['a'])
  const limits = new Map([['a', ModelOverrides.parse({ timeouts: { load: '1m30s' } })]])
  t.same([...toBeyondConfig(limits).loadLimits], [['a', 90_000]])
  const groups = toConfigOverrides(said).get('a')?.(WRITTEN).instance_group
  t.same(groups, toConfigOverrides(said).get('b')?.(WRITTEN).instance_group)
})

await t.test('a tensor keeps what a Model has no words for, if its name stays', async (t) => {
  const config = applyModelOverrides(
    WRITTEN,
    overridesOf({
      inputs: [{ name: 'x', datatype: 'FP16', shape: [3, -1, -1], optional: true }],
      outputs: [
        { name: 'y', datatype: 'FP32', shape: [8] },
        { name: 'new', datatype: 'BYTES', shape: [1] },
      ],
    }),
  )
  const [x] = config.input
  t.match(x, { data_type: 'TYPE_FP16', dims: [3, -1, -1], optional: true, format: 'FORMAT_NCHW' })
  t.same(config.output[0], WRITTEN.output[0])
  t.match(config.output[1], { name: 'new', data_type: 'TYPE_STRING', label_filename: '' })
})

await t.test('without a config.pbtxt the Model says all', async (t) => {
  const config = applyModelOverrides(
    emptyModelConfig('m'),
    overridesOf({ instances: { count: 2 }, batching: {} }),
  )
  t.match(config, {
    name: 'm',
    backend: 'onnxruntime',
    instance_group: [{ kind: 'KIND_AUTO', count: 2 }],
  })
  t.equal(config.dynamic_batching?.max_queue_delay_microseconds, 0)
})

await t.test('batching excludes a sequence batcher', async (t) => {
  const config = parseModelConfig('name: "s" sequence_batching { }', 'config.pbtxt')
  t.throws(() => applyModelOverrides(config, { batching: {} }), {
    reason: 'CONFIG_INVALID',
    message: /batching: got it for model 's', whose config.pbtxt has sequence_batching/,
  })
})
