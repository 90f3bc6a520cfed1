import { ServeError } from '@tutti/errors'
import { isDecoupled } from '../complete/model-metadata.ts'
import {
  backendOfPlatform,
  ENSEMBLE_PLATFORM,
  hasOwnPlatforms,
} from '../complete/select-backend.ts'
import type { DynamicBatching, ModelConfig } from '../model/model-config.ts'
import { validateInstanceGroups } from './validate-instance-groups.ts'
import { sequenceFault } from './validate-sequence-batching.ts'
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

/** Finds the first of `sizes` that is no batch size of the model. */
function preferredSizeFault(sizes: readonly number[], maxBatchSize: number): string | undefined {
  const bad = sizes.find((size) => size <= 0 || size > maxBatchSize)
  if (bad === undefined) return undefined
  return `dynamic batching preferred size must be ${bad <= 0 ? 'positive' : '<= max batch size'}`
}

function priorityFault(batching: DynamicBatching): string | undefined {
  const { priority_levels: levels, default_priority_level: preset } = batching
  if (levels === 0) return undefined
  const isLevel = (level: number) => level >= 1 && level <= levels
  if (!isLevel(preset)) return `default priority level must be in range [1, ${levels}]`
  if (!Object.keys(batching.priority_queue_policy).every((key) => isLevel(Number(key)))) {
    return `priority queue policy must have priority level in range [1, ${levels}]`
  }
  // Measured on 2.51: DELAY together with preserve_ordering loads, whatever the sources say (triton-semantics 9.16).
  return batching.preserve_ordering && levels > 1
    ? "Only one priority level is allowed when 'preserve_ordering' is true"
    : undefined
}

function batchingFault(config: ModelConfig): string | undefined {
  const { dynamic_batching, max_batch_size, name } = config
  if (dynamic_batching === undefined) return sequenceFault(config)
  const { preferred_batch_size: sizes } = dynamic_batching
  const fault = preferredSizeFault(sizes, max_batch_size) ?? priorityFault(dynamic_batching)
  return fault === undefined ? undefined : `${fault} for ${name}`
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

/** Finds the part of a model that a response cache cannot answer for, whether the server has one or not. */
function cacheFault(config: ModelConfig): string | undefined {
  const { name, response_cache: cache, sequence_batching: sequences } = config
  if (cache?.enable !== true) return undefined
  if (isDecoupled(config)) return responseCacheFault(name, "'decoupled' transaction policy")
  return sequences && responseCacheFault(name, 'sequence batching scheduler')
}

/**
 * Builds Triton's text about a model whose responses cannot be cached.
 *
 * @param why - the feature of the model that prevents it, e.g. 'decoupled' transaction policy.
 */
export function responseCacheFault(name: string, why: string): string {
  return `Response Cache does not currently support model ${name} with ${why}. Please disable the response cache.`
}

function nameFault(config: ModelConfig, directoryName: string): string | undefined {
  return config.name === directoryName
    ? undefined
    : `unexpected directory name '${directoryName}' for model '${config.name}', directory name must equal model name`
}

/**
 * Checks the rules that Triton checks when it reads a configuration: names, backend, batch size, batching. In Triton their
 * texts reach only the log, and a load request gets `failed to poll from model repository`.
 *
 * @param config - completed and normalised.
 * @throws ServeError CONFIG_INVALID with Triton's text for the first rule that is broken.
 */
export function validateWhenRead(config: ModelConfig, directoryName: string): void {
  const [fault] = faultsWhenRead(config, directoryName)
  if (fault !== undefined) throw fault
}

/** Finds all faults that `validateWhenRead` looks for, in Triton's order, each with its field. */
export function faultsWhenRead(config: ModelConfig, directoryName: string): readonly ServeError[] {
  const { name, backend, platform, max_batch_size: size } = config
  const faults: readonly (readonly [field: string, text: string | undefined])[] = [
    ['name', name === '' ? "model configuration must specify 'name'" : undefined],
    [backend === '' || platform !== '' ? 'platform' : 'backend', backendFault(config)],
    [size < 0 ? 'max_batch_size' : 'version_policy', policyFault(config)],
    [
      config.dynamic_batching === undefined ? 'sequence_batching' : 'dynamic_batching',
      batchingFault(config),
    ],
    ['ensemble_scheduling', ensembleFault(config)],
    ['response_cache', cacheFault(config)],
    ['name', name === '' ? undefined : nameFault(config, directoryName)],
  ]
  return faults.flatMap(([field, text]) =>
    text === undefined ? [] : new ServeError('CONFIG_INVALID', text, { details: { field } }),
  )
}

/**
 * Checks the rules that Triton checks when it loads a model, with texts that reach a load request: inputs, outputs and instance
 * groups. The steps of an ensemble are not checked here. The engine compares the configuration with the model file.
 *
 * @param config - completed and normalised.
 * @param gpuCount - visible GPUs; absent if unknown, which leaves out the checks that need the number.
 * @param found - the source of that number, for the text of DEVICE_UNAVAILABLE.
 * @throws ServeError CONFIG_INVALID, or DEVICE_UNAVAILABLE for a GPU that does not exist.
 */
export function validateWhenLoaded(config: ModelConfig, gpuCount?: number, found?: string): void {
  validateTensors(config)
  validateInstanceGroups(config, gpuCount, found)
}
