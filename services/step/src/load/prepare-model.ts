import type { Engine } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import {
  type CompletionInput,
  chooseVersions,
  completeModelConfig,
  isEnsembleConfig,
  type ModelConfig,
  normaliseModelConfig,
  parseModelConfig,
  plainName,
  validateWhenRead,
} from '@tutti/model-config'
import {
  listVersionNames,
  type RepositoryModel,
  readLabels,
  resolveModelFile,
  versionDirectory,
} from '@tutti/repository'
import type { StepSettings } from '../step-options.ts'
import { toNormaliseOptions } from './instance-devices.ts'

/** A model whose configuration is valid, before its engine is asked about each version. */
export interface PreparedModel {
  readonly model: RepositoryModel
  /** Normalised, without what an engine would add. */
  readonly config: ModelConfig
  readonly input: CompletionInput
  /** Configuration before it was normalised. */
  readonly written: ModelConfig
}

/** A version whose configuration is valid, before it is loaded. */
export interface PreparedVersion {
  readonly model: RepositoryModel
  /** Configuration, completed by what the version's files say, and normalised. */
  readonly config: ModelConfig
  readonly labels: Readonly<Record<string, readonly string[]>>
}

/** Every size that is preferred is one of its batches. */
const LARGEST_BATCH = 2 ** 31 - 1

type PrepareOptions = Pick<
  StepSettings,
  'engines' | 'autoComplete' | 'defaultMaxBatchSize' | 'devices' | 'unbatched'
> & {
  /** Aborts when the model is no longer wanted or its time is over, as in EngineOptions. */
  readonly signal?: AbortSignal
}

/**
 * Reads and validates a model's configuration: parse, complete, normalise, validate by the rules that hold before a load.
 *
 * @returns undefined for an ensemble, which is no step's to serve.
 * @throws ServeError with Triton's text if the configuration is refused.
 */
export async function prepareModel(
  model: RepositoryModel,
  o: PrepareOptions,
): Promise<PreparedModel | undefined> {
  const prepared = await readModelConfig(model, o)
  if (prepared === undefined) return undefined
  const { config } = prepared
  // The engine may say a batch size where none is written; each version is validated with its own.
  const engine = await o.engines.get(config.backend)
  const isOpen = config.max_batch_size === 0 && mayComplete(config, engine, o)
  const known = isOpen ? { ...config, max_batch_size: LARGEST_BATCH } : config
  validateWhenRead(known, plainName(model.name))
  const labels = await readLabels(model, config.output).catch((error: unknown) =>
    ServeError.from(error),
  )
  // A path that leads out is wrong whatever the files are.
  if (labels instanceof ServeError && labels.reason === 'UNSUPPORTED') throw labels
  return prepared
}

/**
 * Completes the configuration by what a version's files say, as Triton does while it loads one, and validates it.
 *
 * @throws ServeError with Triton's text: a failure of this version.
 */
export async function prepareVersion(
  prepared: PreparedModel,
  version: number,
  o: PrepareOptions,
): Promise<PreparedVersion> {
  const { model } = prepared
  const config = await completeVersion(prepared, version, o)
  validateWhenRead(config, plainName(model.name))
  return { model, config, labels: await readLabels(model, config.output) }
}

/** Completes and normalises the configuration of a version, and validates nothing. */
export async function completeVersion(
  prepared: PreparedModel,
  version: number,
  o: PrepareOptions,
): Promise<ModelConfig> {
  const { model, written } = prepared
  const completed = await completeByEngine(prepared, version, o)
  const isUnbatched = o.unbatched?.has(plainName(model.name)) === true
  if (isUnbatched && written.max_batch_size === 0) refuseBatches(completed)
  return await normalise(completed, o)
}

/**
 * Parses, completes and normalises a configuration as far as no engine is asked, and validates nothing.
 *
 * @returns undefined for an ensemble.
 */
export async function readModelConfig(
  model: RepositoryModel,
  o: PrepareOptions,
): Promise<PreparedModel | undefined> {
  if (model.error !== undefined) throw new ServeError('REPOSITORY_UNREADABLE', model.error)
  const { configText, configPath } = model
  const given = configText === undefined ? undefined : parseModelConfig(configText, configPath)
  if (given !== undefined && isEnsembleConfig(given)) return undefined
  const directoryName = plainName(model.name)
  const isUnbatched = o.unbatched?.has(directoryName) === true
  const defaultMaxBatchSize = isUnbatched ? 0 : o.defaultMaxBatchSize
  // Versions that are not served are not looked at.
  const wanted = chooseVersions(given?.version_policy, model.versions).at(-1) ?? model.versions[0]
  const input = {
    config: given,
    directoryName,
    configPath,
    versionFiles: wanted === undefined ? [] : await listVersionNames(model, wanted),
    autoComplete: o.autoComplete,
    ...(defaultMaxBatchSize !== undefined && { defaultMaxBatchSize }),
  }
  const written = completeModelConfig(input)
  return { model, input, written, config: await normalise(written, o) }
}

/**
 * Finds the configuration with which the latest version of a model would be loaded.
 *
 * @returns undefined for an ensemble.
 * @throws ServeError as `prepareModel` and `prepareVersion`.
 */
export async function completeConfigOf(
  model: RepositoryModel,
  o: PrepareOptions,
): Promise<ModelConfig | undefined> {
  const prepared = await prepareModel(model, o)
  if (prepared === undefined) return undefined
  const latest = chooseVersions(prepared.config.version_policy, model.versions).at(-1)
  if (latest === undefined) return prepared.config
  return (await prepareVersion(prepared, latest, o)).config
}

async function normalise(config: ModelConfig, o: PrepareOptions): Promise<ModelConfig> {
  const options = await toNormaliseOptions(config, await o.engines.get(config.backend), o.devices)
  return normaliseModelConfig(config, options)
}

/** Refuses `maxBatchSize: 0` for a Python model that itself sets another size. @throws ServeError CONFIG_INVALID */
function refuseBatches({ name, max_batch_size: size }: ModelConfig): void {
  if (size === 0) return
  const text = `maxBatchSize: got 0, auto_complete_config of model '${name}' says ${size}: want ${size}, or leave it out`
  throw new ServeError('CONFIG_INVALID', text, { details: { model: name, field: 'maxBatchSize' } })
}

function mayComplete(
  config: ModelConfig,
  engine: Engine | undefined,
  { autoComplete }: PrepareOptions,
): engine is Engine {
  if (!autoComplete || engine === undefined) return false
  // Else only where the answer could be used: a model file may be large or broken.
  return engine.complete !== undefined || config.input.length === 0 || config.output.length === 0
}

async function completeByEngine(
  { model, written: config, input }: PreparedModel,
  version: number,
  o: PrepareOptions,
): Promise<ModelConfig> {
  const { name, directory: modelDirectory } = model
  const engine = await o.engines.get(config.backend)
  if (!mayComplete(config, engine, o)) return config
  if (engine.complete !== undefined) {
    const directory = versionDirectory(model, version)
    const source = { name, version, modelDirectory, versionDirectory: directory, config }
    return await engine.complete(source, { ...(o.signal && { signal: o.signal }) })
  }
  const file = await resolveModelFile(model, version, config.default_model_filename)
  return completeModelConfig({ ...input, inspect: await engine.inspect(file) })
}
