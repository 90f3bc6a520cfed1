import { createEngines, NO_DEVICES } from '@tutti/backends'
import { silentLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  isEnsembleConfig,
  type ModelConfig,
  parseModelConfig,
  selectVersions,
} from '@tutti/model-config'
import { type RepositoryModel, type ScanOptions, scanRepositories } from '@tutti/repository'
import { type BackendConfig, completeConfigOf, readBackendConfig } from '@tutti/step'

/** How the models will be read when they are served: what completes a configuration depends on it. */
export interface RepositoryReading extends ScanOptions {
  /** Of `--disable-auto-complete-config`; true if absent. */
  readonly autoComplete?: boolean
  /** The defaults if absent. */
  readonly backends?: BackendConfig
  /** Of `--backend-directory`. */
  readonly backendDirectory?: string
}

/** What model repositories hold, by directory name. */
export interface ReadRepository {
  /** Completed. */
  readonly configs: ReadonlyMap<string, ModelConfig>
  /** All that are there. */
  readonly versions: ReadonlyMap<string, readonly number[]>
  /** What could not be read, with its model's name. */
  readonly problems: ReadonlyMap<string, string>
}

/**
 * Those of `--model-repository`; undefined for none.
 *
 * @throws ServeError FLAG_INVALID for one that cannot be read, which is an error of the command line, as a file is.
 */
export async function readRepositories(
  paths: readonly string[],
): Promise<ReadRepository | undefined> {
  return paths.length === 0 ? undefined : await refusingUnreadable(() => readRepository(paths))
}

/** @throws ServeError FLAG_INVALID for a repository of `--model-repository` that cannot be read. */
export async function refusingUnreadable<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (cause) {
    const { reason, message } = ServeError.from(cause)
    if (reason !== 'REPOSITORY_UNREADABLE') throw cause
    throw new ServeError('FLAG_INVALID', `--model-repository: ${message}`, { cause })
  }
}

/**
 * Reads what config.pbtxt says of every model; where it names no inputs or outputs, what the model file itself says.
 *
 * @throws ServeError REPOSITORY_UNREADABLE for a repository; what is wrong with one model is among the problems.
 */
export async function readRepository(
  paths: readonly string[],
  o: RepositoryReading = {},
): Promise<ReadRepository> {
  const configs = new Map<string, ModelConfig>()
  const versions = new Map<string, readonly number[]>()
  const problems = new Map<string, string>()
  for (const model of await scanRepositories(paths, o)) {
    try {
      const config = await readConfig(model, o)
      configs.set(model.name, config)
      versions.set(model.name, model.versions)
      // A Model may choose others; without one it is as bad as a file that cannot be read.
      selectVersions(config, model.versions)
    } catch (error) {
      problems.set(model.name, ServeError.from(error).message)
    }
  }
  return { configs, versions, problems }
}

async function readConfig(
  model: RepositoryModel,
  { autoComplete = true, backends = readBackendConfig([]), backendDirectory }: RepositoryReading,
): Promise<ModelConfig> {
  if (model.error !== undefined) throw new ServeError('REPOSITORY_UNREADABLE', model.error)
  const parsed =
    model.configText === undefined
      ? undefined
      : parseModelConfig(model.configText, model.configPath)
  const isWhole = parsed !== undefined && parsed.input.length > 0 && parsed.output.length > 0
  if (parsed !== undefined && (isWhole || isEnsembleConfig(parsed))) {
    return { ...parsed, name: parsed.name || model.name }
  }
  const { python, pytorch, ...rest } = backends
  const engines = createEngines({ log: silentLogger, python, pytorch, backendDirectory })
  const devices = NO_DEVICES
  const config = await completeConfigOf(model, { ...rest, engines, autoComplete, devices })
  if (config !== undefined) return config
  throw new ServeError('CONFIG_INVALID', `'${model.name}' is an ensemble without a graph`)
}
