import type { Engine, HostPolicies } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import { isDecoupled, type ModelConfig } from '@tutti/model-config'
import { FIRST_RESPONSE_FAMILY, firstResponseBuckets } from '@tutti/telemetry'
import { sequenceSlots } from '../sequence/sequence-rules.ts'

type MetricControl = NonNullable<ModelConfig['model_metrics']>['metric_control'][number]

/** Most instances. One costs a thread and some 15 MB; a count with a few zeros too many must not end the process. */
const MAX_INSTANCES = 1024
/** Each sequence with a slot takes some 500 bytes, and what its model keeps. */
const MAX_SEQUENCES = 65_536
/** Rows of one warm-up sample; far beyond what compiles anything. */
const MAX_WARM_UP_ROWS = 1_000_000

/**
 * Refuses settings that the schedulers here do not have.
 * @throws ServeError UNSUPPORTED that names the field.
 */
export function requireSupported(config: ModelConfig): void {
  for (const [field, isSet] of unsupportedFields(config)) {
    if (!isSet) continue
    const text = `'${field}' is not supported here, for model '${config.name}'`
    throw new ServeError('UNSUPPORTED', text, { details: { field } })
  }
  requireWithin(config, 'instance_group.count', countInstances(config), MAX_INSTANCES)
  if (config.sequence_batching !== undefined) {
    const slots = countInstances(config) * sequenceSlots(config)
    requireWithin(config, 'sequence_batching', slots, MAX_SEQUENCES)
  }
  const buckets = firstResponseBuckets(config) ?? []
  if (!buckets.every((bound, i) => i === 0 || bound > (buckets[i - 1] ?? bound))) {
    const text = `'model_metrics' of model '${config.name}': bucket boundaries must be strictly sorted: [${buckets.join(', ')}]`
    throw new ServeError('CONFIG_INVALID', text, { details: { field: 'model_metrics' } })
  }
  for (const { batch_size: rows } of config.model_warmup) {
    requireWithin(config, 'model_warmup.batch_size', rows, MAX_WARM_UP_ROWS)
  }
}

/**
 * Refuses to share an interpreter if the engine has none that can be shared. @throws ServeError CONFIG_INVALID that names the
 * field of the Model.
 */
export function requireShareable(config: ModelConfig, engine: Engine): void {
  if (engine.sharesInterpreters === true) return
  const field = 'instances.sharedInterpreter'
  const text = `${field}: got true for model '${config.name}' of backend '${config.backend}', want it for Python models alone`
  throw new ServeError('CONFIG_INVALID', text, { details: { field } })
}

/** Counts the instances that a normalised config asks for: the sum over its groups, per GPU where a group names GPUs. */
export function countInstances(config: ModelConfig): number {
  let total = 0
  for (const { count, gpus, kind } of config.instance_group) {
    total += count * (kind === 'KIND_GPU' ? gpus.length : 1)
  }
  return total
}

/**
 * Counts the requests that a normalised config lets execute at the same time: one per instance, or a full batch where a batcher
 * makes them.
 */
export function countSlots(config: ModelConfig): number {
  const isBatched = config.dynamic_batching !== undefined || config.sequence_batching !== undefined
  const batch = isBatched ? Math.max(1, config.max_batch_size) : 1
  return countInstances(config) * batch
}

function requireWithin(config: ModelConfig, field: string, got: number, most: number): void {
  if (got <= most) return
  const text = `'${field}' of model '${config.name}' comes to ${got}, want at most ${most}`
  throw new ServeError('UNSUPPORTED', text, { details: { field } })
}

/**
 * Finds settings that are legal and do nothing, as in a Triton that is started without the flag that turns them on.
 *
 * @param o - the flags that were given.
 * @returns the field and the flag.
 */
export function ineffectiveSettings(
  config: ModelConfig,
  o: Readonly<Record<'hasLimiter' | 'hasCache' | 'hasHistograms', boolean>> & {
    readonly hostPolicies?: HostPolicies | undefined
  },
): readonly (readonly [string, string])[] {
  const { instance_group: groups, response_cache: cache, model_metrics: metrics } = config
  const isLimited = groups.some((group) => group.rate_limiter !== undefined)
  const settings = [
    ['instance_group.rate_limiter', '--rate-limit', isLimited && !o.hasLimiter],
    [
      'instance_group.host_policy',
      '--host-policy',
      groups.some(({ host_policy: name }) => name !== '' && o.hostPolicies?.has(name) !== true),
    ],
    ['response_cache', '--cache-config', cache?.enable && !o.hasCache],
    [
      'model_metrics',
      '--metrics-config=histogram_latencies=true',
      metrics?.metric_control.some(
        (one) => !(o.hasHistograms && isDecoupled(config) && isFirstResponse(one)),
      ),
    ],
  ] as const
  return settings.flatMap(([field, flag, isSet]) => (isSet ? [[field, flag] as const] : []))
}

/**
 * Tells whether a model asks for a batcher but has no batch dimension. Triton loads such a model too, and its delay holds up no
 * request.
 */
export function formsNoBatches({ dynamic_batching, max_batch_size }: ModelConfig): boolean {
  return dynamic_batching !== undefined && max_batch_size === 0
}

function isFirstResponse({ metric_identifier: identifier }: MetricControl): boolean {
  return identifier?.family === FIRST_RESPONSE_FAMILY
}

function unsupportedFields(config: ModelConfig): readonly (readonly [string, boolean])[] {
  const { instance_group: groups, sequence_batching: sequence } = config
  return [
    // An answer that waits for its turn would keep the instance from the one before it.
    [
      'sequence_batching.oldest.preserve_ordering (with iterative_sequence)',
      sequence?.iterative_sequence === true && sequence.oldest?.preserve_ordering === true,
    ],
    ['instance_group.passive', groups.some((group) => group.passive)],
    ['instance_group.secondary_devices', groups.some((g) => g.secondary_devices.length > 0)],
    ['model_repository_agents', (config.model_repository_agents?.agents.length ?? 0) > 0],
  ]
}
