import { ServeError, STATUS_CODES, type StatusCode } from '@tutti/errors'
import {
  type InstanceGroup,
  type ModelConfig,
  normaliseModelConfig,
  parseJsonConfig,
  validateWhenRead,
} from '@tutti/model-config'
import { instanceGroup } from '@tutti/model-config/testing'
import t from 'tap'
import { scriptedConfig } from '../testing/scheduler-rig.ts'
import { sequenceConfig } from '../testing/sequence-builders.ts'
import { loadReason } from './load-model.ts'
import {
  countInstances,
  countSlots,
  formsNoBatches,
  ineffectiveSettings,
  requireSupported,
} from './supported-settings.ts'

await t.test('instances are the sum over the groups, per GPU for KIND_GPU', async (t) => {
  const cases: readonly (readonly [string, readonly Partial<InstanceGroup>[], number])[] = [
    ['python', [], 1],
    ['onnxruntime', [], 2],
    ['onnxruntime', [{ count: 0 }], 2],
    ['onnxruntime', [{ kind: 'KIND_GPU', count: 0, gpus: [0] }], 1],
    ['python', [{ count: 0 }, { count: 3 }], 4],
    ['onnxruntime', [{ kind: 'KIND_GPU', count: 2, gpus: [0, 1] }, {}], 5],
    ['onnxruntime', [{ kind: 'KIND_MODEL', count: 2 }], 2],
  ]
  for (const [backend, groups, want] of cases) {
    const config = scriptedConfig({ backend, instance_group: groups.map(instanceGroup) })
    t.equal(countInstances(normaliseModelConfig(config)), want, JSON.stringify(groups))
  }
})

await t.test('a batcher lets an instance execute a batch of requests', async (t) => {
  const instances = { backend: 'python', instance_group: [instanceGroup({ count: 3 })] }
  const dynamic = normaliseModelConfig(scriptedConfig()).dynamic_batching ?? {
    preferred_batch_size: [],
    max_queue_delay_microseconds: 0,
    preserve_ordering: false,
    priority_levels: 0,
    default_priority_level: 0,
    priority_queue_policy: {},
  }
  const slots = (fields: object): number =>
    countSlots(normaliseModelConfig(scriptedConfig({ ...instances, ...fields })))
  t.equal(slots({ max_batch_size: 8 }), 3)
  t.equal(slots({ max_batch_size: 8, dynamic_batching: dynamic }), 24)
  t.equal(slots({ max_batch_size: 0, dynamic_batching: dynamic }), 3)
  const { sequence_batching } = sequenceConfig()
  t.equal(slots({ max_batch_size: 8, sequence_batching }), 24)
})

/** Without the flags. */
const NONE = { hasLimiter: false, hasCache: false, hasHistograms: false }

await t.test('what the scheduler cannot do is refused with its field', async (t) => {
  const oldest = {
    max_candidate_sequences: 4,
    preferred_batch_size: [],
    max_queue_delay_microseconds: 0,
  }
  const cases: readonly (readonly [ModelConfig, string])[] = [
    [
      sequenceConfig({ iterative_sequence: true, oldest: { ...oldest, preserve_ordering: true } }),
      'sequence_batching.oldest.preserve_ordering (with iterative_sequence)',
    ],
    [sequenceConfig({}, { max_batch_size: 65_537 }), 'sequence_batching'],
  ]
  for (const [config, field] of cases) {
    t.throws(() => requireSupported(normaliseModelConfig(config)), {
      reason: 'UNSUPPORTED',
      code: 'UNIMPLEMENTED',
      details: { field },
    })
  }
  for (const config of [sequenceConfig(), sequenceConfig({ iterative_sequence: true })]) {
    t.doesNotThrow(() => requireSupported(normaliseModelConfig(config)))
  }
  const rate = { resources: [{ name: 'r', global: true, count: 1 }], priority: 2 }
  const ignored = instanceGroup({ rate_limiter: rate, host_policy: 'p' })
  const config = scriptedConfig({
    instance_group: [ignored],
    response_cache: { enable: true },
    model_metrics: { metric_control: [{ histogram_options: { buckets: [1] } }] },
  })
  requireSupported(config)
  t.same(ineffectiveSettings(config, NONE), [
    ['instance_group.rate_limiter', '--rate-limit'],
    ['instance_group.host_policy', '--host-policy'],
    ['response_cache', '--cache-config'],
    ['model_metrics', '--metrics-config=histogram_latencies=true'],
  ])
  const hostPolicies = new Map([['p', [0]]])
  const all = { hasLimiter: true, hasCache: true, hasHistograms: true, hostPolicies }
  t.same(
    ineffectiveSettings(config, all).map(([field]) => field),
    ['model_metrics'],
  )
  t.same(ineffectiveSettings(scriptedConfig(), NONE), [])
  const control = {
    metric_identifier: { family: 'nv_inference_first_response_histogram_ms' },
    histogram_options: { buckets: [1, 2] },
  }
  const decoupled = scriptedConfig({
    model_transaction_policy: { decoupled: true },
    model_metrics: { metric_control: [control] },
  })
  requireSupported(decoupled)
  t.same(ineffectiveSettings(decoupled, { ...NONE, hasHistograms: true }), [])
  t.equal(ineffectiveSettings(decoupled, NONE).length, 1)
  const unsorted = { ...control, histogram_options: { buckets: [2, 2] } }
  t.throws(
    () =>
      requireSupported({ ...decoupled, model_metrics: { metric_control: [control, unsorted] } }),
    {
      reason: 'CONFIG_INVALID',
      message: `'model_metrics' of model '${decoupled.name}': bucket boundaries must be strictly sorted: [2, 2]`,
    },
  )
})

await t.test('numbers that no machine can serve are refused with their bound', async (t) => {
  const warmUp = { name: 's', batch_size: 4_294_967_295, count: 0, inputs: {} }
  const cases = [
    [
      'instance_group.count',
      { instance_group: [instanceGroup({ count: 2 ** 31 - 1 })] },
      2 ** 31 - 1,
      1024,
    ],
    [
      'instance_group.count',
      { instance_group: [instanceGroup({ count: 1000 }), instanceGroup({ count: 25 })] },
      1025,
      1024,
    ],
    ['model_warmup.batch_size', { model_warmup: [warmUp] }, 4_294_967_295, 1_000_000],
  ] as const
  for (const [field, fields, got, most] of cases) {
    const config = scriptedConfig(fields)
    t.throws(() => requireSupported(config), {
      reason: 'UNSUPPORTED',
      message: `'${field}' of model '${config.name}' comes to ${got}, want at most ${most}`,
      details: { field },
    })
  }
  requireSupported(scriptedConfig({ instance_group: [instanceGroup({ count: 1024 })] }))
})

await t.test('reasons name every code as Triton prints it', async (t) => {
  const wanted: Partial<Record<StatusCode, string>> = {
    INTERNAL: 'Internal: x',
    INVALID_ARGUMENT: 'Invalid argument: x',
    UNAVAILABLE: 'Unavailable: x',
    UNIMPLEMENTED: 'Unsupported: x',
    NOT_FOUND: 'Not found: x',
  }
  for (const code of Object.keys(STATUS_CODES) as StatusCode[]) {
    const reason = loadReason(new ServeError('INTERNAL', 'x', { code }))
    t.match(reason, /^[A-Z][a-z ]+: x$/)
    if (wanted[code] !== undefined) t.equal(reason, wanted[code])
  }
  t.equal(loadReason(new Error('odd')), 'Internal: odd')
})

await t.test(
  'a batcher without a batch dimension is legal, as in Triton, and batches nothing',
  (t) => {
    const dynamic_batching = parseJsonConfig({ dynamic_batching: {} }).dynamic_batching
    for (const [max_batch_size, isBatched, want] of [
      [0, true, true],
      [0, false, false],
      [1, true, false],
    ] as const) {
      const config = scriptedConfig({
        max_batch_size,
        ...(isBatched && dynamic_batching && { dynamic_batching }),
      })
      requireSupported(config)
      validateWhenRead(normaliseModelConfig(config), config.name)
      t.equal(formsNoBatches(config), want, `${max_batch_size} ${isBatched}`)
    }
    t.end()
  },
)
