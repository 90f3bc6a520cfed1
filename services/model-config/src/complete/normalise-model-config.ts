import { findBackend } from '@tutti/engines'
import type {
  DynamicBatching,
  InstanceGroup,
  ModelConfig,
  ModelOptimization,
  SequenceBatching,
} from '../model/model-config.ts'

/** The devices of the machine, as far as defaults depend on them. */
export interface NormaliseOptions {
  /** Visible GPUs; default 0. */
  readonly gpuCount?: number
  /** Meaning of KIND_AUTO for a group that names no GPUs. Default: KIND_CPU. A group that names GPUs always means KIND_GPU. */
  readonly autoKind?: 'KIND_CPU' | 'KIND_GPU'
}

function normaliseDynamic(batching: DynamicBatching, maxBatchSize: number): DynamicBatching {
  const isUnset = batching.preferred_batch_size.length === 0 && maxBatchSize > 0
  return isUnset ? { ...batching, preferred_batch_size: [maxBatchSize] } : batching
}

/** Triton's default for `max_sequence_idle_microseconds`. */
const SEQUENCE_IDLE_US = 1_000_000

function normaliseSequence(batching: SequenceBatching, maxBatchSize: number): SequenceBatching {
  const { oldest, max_sequence_idle_microseconds: idleUs } = batching
  const isUnset = oldest?.preferred_batch_size.length === 0 && maxBatchSize > 0
  return {
    ...batching,
    max_sequence_idle_microseconds: idleUs === 0 ? SEQUENCE_IDLE_US : idleUs,
    ...(isUnset && { oldest: { ...oldest, preferred_batch_size: [maxBatchSize] } }),
  }
}

const NO_GROUP: InstanceGroup = {
  name: '',
  kind: 'KIND_AUTO',
  count: 0,
  gpus: [],
  secondary_devices: [],
  profile: [],
  passive: false,
  host_policy: '',
}

function normaliseKind(group: InstanceGroup, o: NormaliseOptions): InstanceGroup['kind'] {
  if (group.kind !== 'KIND_AUTO') return group.kind
  return group.gpus.length > 0 ? 'KIND_GPU' : (o.autoKind ?? 'KIND_CPU')
}

function normaliseGroup(
  group: InstanceGroup,
  fallbackName: string,
  backend: string,
  o: NormaliseOptions,
): InstanceGroup {
  const { gpuCount = 0 } = o
  const kind = normaliseKind(group, o)
  const { cpuInstances = 1 } = findBackend(backend) ?? {}
  const defaultCount = kind === 'KIND_CPU' ? cpuInstances : 1
  const isOnEveryGpu = kind === 'KIND_GPU' && group.gpus.length === 0
  return {
    ...group,
    name: group.name === '' ? fallbackName : group.name,
    kind,
    count: group.count < 1 ? defaultCount : group.count,
    gpus: isOnEveryGpu ? Array.from({ length: gpuCount }, (_, id) => id) : group.gpus,
  }
}

function normaliseGroups(config: ModelConfig, o: NormaliseOptions): readonly InstanceGroup[] {
  const only: InstanceGroup = {
    ...NO_GROUP,
    name: config.name,
    kind: findBackend(config.backend)?.instanceKind ?? 'KIND_AUTO',
  }
  const groups = config.instance_group.length === 0 ? [only] : config.instance_group
  return groups.map((group, i) => normaliseGroup(group, `${config.name}_${i}`, config.backend, o))
}

function normaliseOptimization(given: ModelOptimization | undefined): ModelOptimization {
  return {
    priority: 'PRIORITY_DEFAULT',
    gather_kernel_buffer_threshold: 0,
    eager_batching: false,
    ...given,
    input_pinned_memory: given?.input_pinned_memory ?? { enable: true },
    output_pinned_memory: given?.output_pinned_memory ?? { enable: true },
  }
}

/**
 * Fills in the defaults that Triton fills in after completion. Idempotent; does not change its argument.
 *
 * An ensemble keeps its `instance_group` and `optimization`, because an ensemble may have neither.
 */
export function normaliseModelConfig(config: ModelConfig, o: NormaliseOptions = {}): ModelConfig {
  const { dynamic_batching, sequence_batching, max_batch_size } = config
  const scheduled: ModelConfig = {
    ...config,
    version_policy: config.version_policy ?? { latest: { num_versions: 1 } },
    ...(dynamic_batching && {
      dynamic_batching: normaliseDynamic(dynamic_batching, max_batch_size),
    }),
    ...(sequence_batching && {
      sequence_batching: normaliseSequence(sequence_batching, max_batch_size),
    }),
  }
  if (config.ensemble_scheduling !== undefined) return scheduled
  return {
    ...scheduled,
    optimization: normaliseOptimization(config.optimization),
    instance_group: normaliseGroups(config, o),
  }
}
