import { ServeError } from '@tutti/errors'
import {
  completeModelConfig,
  type InspectedModel,
  isEnsembleConfig,
  type ModelConfig,
  normaliseModelConfig,
  parseModelConfig,
  selectBackend,
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
  /** Why no version can be loaded, where Triton finds that out only while it loads one: code that fails, labels that are missing. */
  readonly failure?: ServeError
}

type PrepareOptions = Pick<
  StepSettings,
  'engines' | 'autoComplete' | 'defaultMaxBatchSize' | 'devices'
>

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
  if (model.error !== undefined) throw new ServeError('REPOSITORY_UNREADABLE', model.error)
  const { name, configText, configPath } = model
  const given = configText === undefined ? undefined : parseModelConfig(configText, configPath)
  if (given !== undefined && isEnsembleConfig(given)) return undefined
  const { completed, failure } = await complete(model, given, o)
  const engine = o.engines.get(completed.backend)
  const config = normaliseModelConfig(
    completed,
    await toNormaliseOptions(completed, engine, o.devices),
  )
  if (failure !== undefined) return { model, config, labels: {}, failure }
  validateWhenRead(config, name)
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

async function complete(
  model: RepositoryModel,
  config: ModelConfig | undefined,
  o: PrepareOptions,
): Promise<{ readonly completed: ModelConfig; readonly failure?: ServeError }> {
  const { name, configPath } = model
  const first = model.versions[0]
  const versionFiles = await listFirstVersion(model)
  const inspect = await inspectModel(model, config, versionFiles, o)
  const completed = completeModelConfig({
    config,
    directoryName: name,
    configPath,
    versionFiles,
    ...(inspect !== undefined && { inspect }),
    autoComplete: o.autoComplete,
    ...(o.defaultMaxBatchSize !== undefined && { defaultMaxBatchSize: o.defaultMaxBatchSize }),
  })
  const engine = o.engines.get(completed.backend)
  if (!o.autoComplete || engine?.complete === undefined || first === undefined) {
    return { completed }
  }
  const source = {
    name,
    version: first,
    modelDirectory: model.directory,
    versionDirectory: versionDirectory(model, first),
    config: completed,
  }
  try {
    return { completed: await engine.complete(source) }
  } catch (error) {
    return { completed, failure: ServeError.from(error) }
  }
}

/** Asks the engine only where its answer could be used: a model file may be large or broken. */
async function inspectModel(
  model: RepositoryModel,
  config: ModelConfig | undefined,
  versionFiles: readonly string[],
  o: PrepareOptions,
): Promise<InspectedModel | undefined> {
  const isDeclared = config !== undefined && config.input.length > 0 && config.output.length > 0
  const first = model.versions[0]
  if (!o.autoComplete || isDeclared || first === undefined) return undefined
  const choice = selectBackend(config, model.name, versionFiles)
  const engine = o.engines.get(choice.backend)
  if (engine === undefined || engine.complete !== undefined) return undefined
  return engine.inspect(await resolveModelFile(model, first, choice.modelFilename))
}
