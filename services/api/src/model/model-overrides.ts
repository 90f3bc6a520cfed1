import { engineOfFormat, findEngine } from '@tutti/engines'
import { ServeError } from '@tutti/errors'
import {
  backendOfPlatform,
  hasOwnPlatforms,
  type ModelConfig,
  parseJsonConfig,
  toJsonConfig,
} from '@tutti/model-config'
import { DATATYPES } from '@tutti/tensor'
import { z } from 'zod'
import { AUTO, duration, toMilliseconds } from '../schema/fields.ts'
import type { ResourceOutput, WarmupSamples } from './model-serving.ts'
import { ModelSpec } from './model-spec.ts'

const { shape } = ModelSpec

/** The fields of a Model that override the model's configuration (config.pbtxt). Plain JSON. */
export const ModelOverrides = z.strictObject({
  modelFormat: shape.modelFormat.optional(),
  maxBatchSize: shape.maxBatchSize,
  versionPolicy: shape.versionPolicy,
  instances: shape.instances,
  inputs: shape.inputs,
  outputs: shape.outputs,
  batching: shape.batching,
  warmup: shape.warmup,
  // A limit of pods alone: servers outside of Kubernetes have none.
  timeouts: z.strictObject({ load: duration('Time for the model to load.') }).optional(),
})
export type ModelOverrides = z.infer<typeof ModelOverrides>

/** Picks the fields of a Model that override its configuration, except `timeouts`. */
export function toModelOverrides(spec: ModelSpec): ModelOverrides {
  const { modelFormat, maxBatchSize, versionPolicy, instances } = spec
  const { inputs, outputs, batching, warmup } = spec
  return {
    modelFormat,
    ...(maxBatchSize !== undefined && { maxBatchSize }),
    ...(versionPolicy !== undefined && { versionPolicy }),
    ...(instances !== undefined && { instances }),
    ...(inputs !== undefined && { inputs }),
    ...(outputs !== undefined && { outputs }),
    ...(batching !== undefined && { batching }),
    ...(warmup !== undefined && { warmup }),
  }
}

/**
 * Overrides a configuration with the fields that a Model sets. Everything else stays. An input or output that keeps its name
 * also keeps its format, reshape and labels, because a Model has no fields for them.
 *
 * @param config - as parsed from config.pbtxt, or the empty one.
 * @returns a new configuration, neither completed nor checked.
 * @throws ServeError CONFIG_INVALID if `batching` is set for a model with a sequence batcher.
 */
export function applyModelOverrides(config: ModelConfig, overrides: ModelOverrides): ModelConfig {
  const { sequence_batching: sequence, name } = config
  if (overrides.batching !== undefined && sequence !== undefined) {
    const text = `batching: got it for model '${name}', whose config.pbtxt has sequence_batching: want one of them`
    throw new ServeError('CONFIG_INVALID', text, { details: { model: name, field: 'batching' } })
  }
  const changes = overridden(toJsonConfig(config), overrides)
  // As protobuf JSON, so that what a Model does not say gets the defaults that the parser gives.
  const parsed: Partial<ModelConfig> = Object.fromEntries(
    Object.entries(parseJsonConfig(changes)).filter(([field]) => Object.hasOwn(changes, field)),
  )
  return { ...config, ...backendOf(config, overrides), ...parsed }
}

type ByModel = ReadonlyMap<string, ModelOverrides>

/** Makes a function for each model that applies the model's overrides to its configuration. The functions are by model name. */
export function toConfigOverrides(said: ByModel) {
  return new Map([...said].map(([name, overrides]) => [name, toOverride(overrides)]))
}

function toOverride(overrides: ModelOverrides): (config: ModelConfig) => ModelConfig {
  return (config) => applyModelOverrides(config, overrides)
}

/** Settings of Models that a model configuration cannot express, by model name. */
export interface BeyondConfig {
  /** Names of the models whose batches wait as long as it pays (`maxQueueDelay: auto`). Their configurations have no delay. */
  readonly autoDelays: ReadonlySet<string>
  /** Names of the models whose instances share a process (`sharedInterpreter`). */
  readonly sharedInterpreters: ReadonlySet<string>
  /**
   * Names of the models without a batch dimension (`maxBatchSize: 0`). In a configuration, 0 can also leave the batch size to
   * the model.
   */
  readonly unbatched: ReadonlySet<string>
  /** Longest time for a load by model name, in milliseconds (`timeouts.load`). */
  readonly loadLimits: ReadonlyMap<string, number>
}

/** Collects the settings of Models that their configurations cannot express. */
export function toBeyondConfig(said: ByModel): BeyondConfig {
  const modelsThat = (isSet: (overrides: ModelOverrides) => boolean): ReadonlySet<string> =>
    new Set([...said].flatMap(([name, overrides]) => (isSet(overrides) ? [name] : [])))
  return {
    autoDelays: modelsThat(({ batching }) => batching?.maxQueueDelay === AUTO),
    sharedInterpreters: modelsThat(({ instances }) => instances?.sharedInterpreter === true),
    unbatched: modelsThat(({ maxBatchSize }) => maxBatchSize === 0),
    loadLimits: new Map(
      [...said].flatMap(([name, { timeouts }]) =>
        timeouts === undefined ? [] : [[name, toMilliseconds(timeouts.load)]],
      ),
    ),
  }
}

function backendOf(config: ModelConfig, { modelFormat }: ModelOverrides): Partial<ModelConfig> {
  if (modelFormat === undefined) return {}
  const { backend, servesOthers } = engineOfFormat(modelFormat.name)
  const known = config.backend === '' ? backendOfPlatform(config.platform) : config.backend
  // A configuration that names the same backend already stays as it is written, and so does a backend that itself is code for the engine.
  const isServed = servesOthers === true && isCustom(known)
  return known === backend || isServed ? {} : { backend, platform: '' }
}

/** Tells whether a configuration names a backend that neither a format nor a platform of Triton stands for. */
function isCustom(backend: string | undefined): boolean {
  const isNamed = backend !== undefined && backend !== ''
  return isNamed && findEngine(backend) === undefined && !hasOwnPlatforms(backend)
}

type JsonObject = Readonly<Record<string, unknown>>

/** Returns the fields of the configuration that change, as protobuf JSON. */
function overridden(config: JsonObject, overrides: ModelOverrides): JsonObject {
  const { maxBatchSize, versionPolicy, inputs, outputs, instances, batching, warmup } = overrides
  return present({
    max_batch_size: maxBatchSize,
    version_policy: versionPolicy && toVersionPolicy(versionPolicy),
    input: inputs?.map((input) => ({
      ...named(config['input'], input.name),
      ...toTensor(input),
      optional: input.optional ?? false,
    })),
    output: outputs?.map((output) => ({
      ...named(config['output'], output.name),
      ...toTensor(output),
    })),
    instance_group: instances && [toInstanceGroup(config['instance_group'], instances)],
    dynamic_batching: batching && toDynamicBatching(config['dynamic_batching'], batching),
    model_warmup: warmup?.map(toWarmup),
  })
}

/** Copies the members that are not undefined. */
function present(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))
}

function named(tensors: unknown, name: string): JsonObject {
  const known: readonly JsonObject[] = Array.isArray(tensors) ? tensors : []
  return known.find((tensor) => tensor['name'] === name) ?? {}
}

function toTensor(tensor: ResourceOutput): JsonObject {
  const { name, datatype, shape: dims } = tensor
  return { name, data_type: DATATYPES[datatype].config, dims }
}

function toVersionPolicy(policy: NonNullable<ModelOverrides['versionPolicy']>): JsonObject {
  const { latest, specific } = policy
  if (latest !== undefined) return { latest: { num_versions: latest.numVersions } }
  return specific === undefined ? { all: {} } : { specific: { versions: specific.versions } }
}

/** Converts an instance group. What the repository's first group says stays, but for its devices if a kind is said. */
function toInstanceGroup(
  groups: unknown,
  { count, kind }: NonNullable<ModelOverrides['instances']>,
): JsonObject {
  const [first = {}]: readonly JsonObject[] = Array.isArray(groups) ? groups : []
  if (kind === undefined) return { ...first, count }
  // The numbers of GPUs are those of another machine, and those of profiles of another device.
  const { gpus: _, profile: __, secondary_devices: ___, ...rest } = first
  return { ...rest, count, kind }
}

function toDynamicBatching(
  known: unknown,
  batching: NonNullable<ModelOverrides['batching']>,
): JsonObject {
  const { preferredBatchSizes, maxQueueDelay, maxQueueLength } = batching
  const before: JsonObject = Object(known)
  const queue = { ...Object(before['default_queue_policy']), max_queue_size: maxQueueLength }
  // No delay is what AUTO comes to as well.
  const delayUs = maxQueueDelay && Math.round(toMilliseconds(maxQueueDelay) * 1000)
  const changes = {
    preferred_batch_size: preferredBatchSizes,
    max_queue_delay_microseconds: delayUs,
    default_queue_policy: maxQueueLength === undefined ? undefined : queue,
  }
  return { ...before, ...present(changes) }
}

function toWarmup({ name, batchSize = 0, count = 1, inputs }: WarmupSamples[number]): JsonObject {
  const entries = inputs.map((input): [string, JsonObject] => [
    input.name,
    present({
      data_type: DATATYPES[input.datatype].config,
      dims: input.shape,
      zero_data: input.data === 'Zero' || undefined,
      random_data: input.data === 'Random' || undefined,
      input_data_file: input.file,
    }),
  ])
  return { name, batch_size: batchSize, count, inputs: Object.fromEntries(entries) }
}
