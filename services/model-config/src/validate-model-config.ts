import { ServeError } from '@tutti/errors'
import type { ModelConfig } from './model-config.ts'
import { backendOfPlatform, ENSEMBLE_PLATFORM, hasOwnPlatforms } from './select-backend.ts'
import { validateInstanceGroups } from './validate-instance-groups.ts'
import { schedulerFault } from './validate-schedulers.ts'
import { validateTensors } from './validate-tensors.ts'

function backendFault({ name, platform, backend }: ModelConfig): string | undefined {
  if (backend === '') {
    if (platform === ENSEMBLE_PLATFORM) return undefined
    return platform === ''
      ? `must specify 'platform' or 'backend' for '${name}'`
      : `unexpected platform type '${platform}' for ${name}`
  }
  if (platform === ENSEMBLE_PLATFORM) {
    return `Ensemble model '${name}' must have platform type 'ensemble' and empty backend type`
  }
  return hasOwnPlatforms(backend) && backendOfPlatform(platform) !== backend
    ? `unexpected 'platform' and 'backend' pair, got:${platform}, ${backend}`
    : undefined
}

function metricsFault(config: ModelConfig): string | undefined {
  for (const control of config.model_metrics?.metric_control ?? []) {
    if (control.metric_identifier === undefined) {
      return "metric control must specify 'metric_identifier'"
    }
    if (control.metric_identifier.family === '') {
      return "metric identifier must specify non-empty 'family'"
    }
    if (control.histogram_options === undefined) {
      return "metric control must specify 'histogram_options'"
    }
    if (control.histogram_options.buckets.length === 0) {
      return "histogram options must specify non-empty 'buckets'"
    }
  }
  return undefined
}

function policyFault(config: ModelConfig): string | undefined {
  const { name } = config
  if (config.max_batch_size < 0) return `'max_batch_size' must be non-negative value for ${name}`
  return config.version_policy === undefined
    ? `must specify 'version policy' for ${name}`
    : undefined
}

function ensembleFault(config: ModelConfig): string | undefined {
  return config.platform === ENSEMBLE_PLATFORM && config.ensemble_scheduling === undefined
    ? `ensemble scheduling must be set for ensemble ${config.name} whose platform is ensemble`
    : undefined
}

function cacheFault(config: ModelConfig): string | undefined {
  const isCached = config.response_cache?.enable === true
  return isCached && config.model_transaction_policy?.decoupled === true
    ? `Response Cache does not currently support model ${config.name} with 'decoupled' transaction policy. Please disable the response cache.`
    : undefined
}

function nameFault(config: ModelConfig, directoryName: string): string | undefined {
  return config.name === directoryName
    ? undefined
    : `unexpected directory name '${directoryName}' for model '${config.name}', directory name must equal model name`
}

/**
 * The rules that Triton checks as soon as it reads a configuration: names, backend, batch size, schedulers. In Triton
 * their texts reach only the log, and a load request gets `failed to poll from model repository`.
 *
 * @param config - completed and normalised.
 * @throws ServeError CONFIG_INVALID with Triton's text for the first rule that is broken.
 */
export function validateWhenRead(config: ModelConfig, directoryName: string): void {
  const fault =
    (config.name === '' ? "model configuration must specify 'name'" : undefined) ??
    backendFault(config) ??
    policyFault(config) ??
    schedulerFault(config) ??
    ensembleFault(config) ??
    cacheFault(config) ??
    metricsFault(config) ??
    nameFault(config, directoryName)
  if (fault !== undefined) throw new ServeError('CONFIG_INVALID', fault)
}

/**
 * The rules that Triton checks when it loads the model, with texts that a load request gets: inputs, outputs, instance
 * groups. What an ensemble's steps must fulfil is not part of it, nor what the model file itself says: that is the engine's to
 * compare.
 *
 * @param config - completed and normalised.
 * @param gpuCount - visible GPUs; absent means unknown: then only the machine-independent rules are checked.
 * @param found - how the number of GPUs is known: part of the text about one that is not there.
 * @throws ServeError CONFIG_INVALID, or DEVICE_UNAVAILABLE for a GPU that is not there.
 */
export function validateWhenLoaded(config: ModelConfig, gpuCount?: number, found?: string): void {
  validateTensors(config)
  validateInstanceGroups(config, gpuCount, found)
}
