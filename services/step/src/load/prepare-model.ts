import { ServeError } from '@tutti/errors'
import {
  type CompletionInput,
  completeModelConfig,
  isEnsembleConfig,
  type ModelConfig,
  normaliseModelConfig,
  parseModelConfig,
  plainName,
  validateWhenRead,
} from '@tutti/model-config'
import {
  listFirstVersion,
  type RepositoryModel,
  readLabels,
  resolveModelFile,
  versionDirectory,
} from '@tutti/repository'
import type { StepSettings } from '../step-options.ts'
import { toNormaliseOptions } from './instance-devices.ts'

/** A model whose configuration stands; its versions are still to be loaded. */
export interface PreparedModel {
  readonly model: RepositoryModel
  /** Completed and normalised. */
  readonly config: ModelConfig
  readonly labels: Readonly<Record<string, readonly string[]>>
  /** Why no version can be loaded, where Triton finds that out only while it loads one: code or a model file that fails, labels that are missing. */
  readonly failure?: ServeError
}

type PrepareOptions = Pick<
  StepSettings,
  'engines' | 'autoComplete' | 'defaultMaxBatchSize' | 'devices' | 'unbatched'
> & {
  /** As EngineOptions'. */
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
  const read = await readConfig(model, o)
  if (read === undefined) return undefined
  const { config, failure } = read
  validateWhenRead(config, plainName(model.name))
  if (failure !== undefined) return { model, config, labels: {}, failure }
  try {
    return { model, config, labels: await readLabels(model, config.output) }
  } catch (error) {
    const unreadable = ServeError.from(error)
    // A path that leads out is wrong whatever the files are.
    if (unreadable.reason === 'UNSUPPORTED') throw unreadable
    return { model, config, labels: {}, failure: unreadable }
  }
}

/**
 * Parses, completes and normalises a configuration, and validates nothing.
 *
 * @returns undefined for an ensemble.
 */
export async function readConfig(
  model: RepositoryModel,
  o: PrepareOptions,
): Promise<Pick<PreparedModel, 'config' | 'failure'> | undefined> {
  if (model.error !== undefined) throw new ServeError('REPOSITORY_UNREADABLE', model.error)
  const { configText, configPath } = model
  const given = configText === undefined ? undefined : parseModelConfig(configText, configPath)
  if (given !== undefined && isEnsembleConfig(given)) return undefined
  const { completed, failure } = await complete(model, given, o)
  const options = await toNormaliseOptions(completed, o.engines.get(completed.backend), o.devices)
  return { config: normaliseModelConfig(completed, options), ...(failure && { failure }) }
}

/**
 * The configuration with which a model would be loaded.
 *
 * @returns undefined for an ensemble.
 * @throws ServeError as `prepareModel`, or with what no version can be loaded for.
 */
export async function completeConfigOf(
  model: RepositoryModel,
  o: PrepareOptions,
): Promise<ModelConfig | undefined> {
  const prepared = await prepareModel(model, o)
  if (prepared?.failure !== undefined) throw prepared.failure
  return prepared?.config
}

/** Triton asks the engine only while it loads a version: what the engine says then is a failure of the versions, not of the configuration. */
async function complete(
  model: RepositoryModel,
  config: ModelConfig | undefined,
  o: PrepareOptions,
): Promise<{ readonly completed: ModelConfig; readonly failure?: ServeError }> {
  const directoryName = plainName(model.name)
  const isUnbatched = o.unbatched?.has(directoryName) === true
  const defaultMaxBatchSize = isUnbatched ? 0 : o.defaultMaxBatchSize
  const input = {
    config,
    directoryName,
    configPath: model.configPath,
    versionFiles: await listFirstVersion(model),
    autoComplete: o.autoComplete,
    ...(defaultMaxBatchSize !== undefined && { defaultMaxBatchSize }),
  }
  const completed = completeModelConfig(input)
  try {
    const whole = await completeByEngine(model, completed, { ...o, input })
    if (isUnbatched && completed.max_batch_size === 0) refuseBatches(whole)
    return { completed: whole }
  } catch (error) {
    return { completed, failure: ServeError.from(error) }
  }
}

/** A Python model may say another size than 0. @throws ServeError CONFIG_INVALID */
function refuseBatches({ name, max_batch_size: size }: ModelConfig): void {
  if (size === 0) return
  const text = `maxBatchSize: got 0, auto_complete_config of model '${name}' says ${size}: want ${size}, or leave it out`
  throw new ServeError('CONFIG_INVALID', text, { details: { model: name, field: 'maxBatchSize' } })
}

async function completeByEngine(
  model: RepositoryModel,
  config: ModelConfig,
  o: PrepareOptions & { readonly input: CompletionInput },
): Promise<ModelConfig> {
  const { name, directory: modelDirectory } = model
  const engine = o.engines.get(config.backend)
  const [version] = model.versions
  if (!o.autoComplete || engine === undefined || version === undefined) return config
  if (engine.complete !== undefined) {
    const directory = versionDirectory(model, version)
    const source = { name, version, modelDirectory, versionDirectory: directory, config }
    return await engine.complete(source, { ...(o.signal && { signal: o.signal }) })
  }
  // Only where the answer could be used: a model file may be large or broken.
  if (config.input.length > 0 && config.output.length > 0) return config
  const file = await resolveModelFile(model, version, config.default_model_filename)
  return completeModelConfig({ ...o.input, inspect: await engine.inspect(file) })
}
