import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { countInstances } from './instance-count.ts'

/** An instance costs a thread and some 15 MB; a count with a few zeros too many must not end the process. */
const MAX_INSTANCES = 1024
/** Rows of one warm-up sample; far beyond what compiles anything. */
const MAX_WARM_UP_ROWS = 1_000_000

/**
 * Refuses what the schedulers here cannot do.
 * @throws ServeError UNSUPPORTED that names the field.
 */
export function requireSupported(config: ModelConfig): void {
  for (const [field, isSet] of unsupportedFields(config)) {
    if (!isSet) continue
    throw new ServeError(
      'UNSUPPORTED',
      `'${field}' is not supported here, for model '${config.name}'`,
      {
        details: { field },
      },
    )
  }
  requireWithin(config, 'instance_group.count', countInstances(config), MAX_INSTANCES)
  for (const { batch_size: rows } of config.model_warmup) {
    requireWithin(config, 'model_warmup.batch_size', rows, MAX_WARM_UP_ROWS)
  }
}

function requireWithin(config: ModelConfig, field: string, got: number, most: number): void {
  if (got <= most) return
  throw new ServeError(
    'UNSUPPORTED',
    `'${field}' of model '${config.name}' comes to ${got}, want at most ${most}`,
    { details: { field } },
  )
}

/**
 * Settings that are legal and do nothing, as in a Triton that is started without the flag that turns them on.
 *
 * @returns the field and the flag.
 */
export function ineffectiveSettings(config: ModelConfig): readonly (readonly [string, string])[] {
  const settings: (readonly [string, string])[] = []
  if (config.instance_group.some((group) => group.rate_limiter !== undefined)) {
    settings.push(['instance_group.rate_limiter', '--rate-limit'])
  }
  if (config.instance_group.some((group) => group.host_policy !== '')) {
    settings.push(['instance_group.host_policy', '--host-policy'])
  }
  if (config.response_cache?.enable === true) settings.push(['response_cache', '--cache-config'])
  if ((config.model_metrics?.metric_control.length ?? 0) > 0) {
    settings.push(['model_metrics', '--metrics-config'])
  }
  return settings
}

function unsupportedFields(config: ModelConfig): readonly (readonly [string, boolean])[] {
  const groups = config.instance_group
  return [
    ['sequence_batching', config.sequence_batching !== undefined],
    ['batch_input', config.batch_input.length > 0],
    ['batch_output', config.batch_output.length > 0],
    ['instance_group.passive', groups.some((group) => group.passive)],
    ['instance_group.secondary_devices', groups.some((g) => g.secondary_devices.length > 0)],
    ['model_repository_agents', (config.model_repository_agents?.agents.length ?? 0) > 0],
    ['input.is_shape_tensor', config.input.some((input) => input.is_shape_tensor)],
  ]
}
