import { modelNameOf, toConfigOverrides } from '@tutti/api'
import { createEngines, NO_DEVICES } from '@tutti/backends'
import { silentLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  isEnsembleConfig,
  type ModelConfig,
  parseModelConfig,
  selectVersions,
} from '@tutti/model-config'
import {
  type RepositoryModel,
  type ScanOptions,
  scanRepositories,
  versionDirectory,
} from '@tutti/repository'
import { type BackendConfig, completeConfigOf, readBackendConfig } from '@tutti/step'
import type { LocatedManifest } from './parse-manifests.ts'

/** The options with which models will be served, since the completion of a configuration depends on them. */
export interface RepositoryReading extends ScanOptions {
  /** Auto-completion, which `--disable-auto-complete-config` turns off; true if absent. */
  readonly autoComplete?: boolean
  /** Settings of the backends; the defaults if absent. */
  readonly backends?: BackendConfig
  /** The folder that `--backend-directory` names. */
  readonly backendDirectory?: string
  /** Served names of Models with `maxBatchSize: 0`. */
  readonly unbatched?: ReadonlySet<string>
}

/**
 * Makes the options to read repositories for manifests. Models with `maxBatchSize: 0` are completed without a batch dimension.
 */
export function readingFor(manifests: readonly LocatedManifest[]): RepositoryReading {
  const names = manifests.flatMap(({ manifest }) =>
    manifest.kind === 'Model' && manifest.spec.maxBatchSize === 0 ? modelNameOf(manifest) : [],
  )
  const said = new Map(names.map((name) => [name, { maxBatchSize: 0 }]))
  return { overrides: toConfigOverrides(said), unbatched: new Set(names) }
}

/** The models of model repositories, by the names of their directories. */
export interface ReadRepository {
  /** Completed configurations. */
  readonly configs: ReadonlyMap<string, ModelConfig>
  /** Versions of each model on disk. */
  readonly versions: ReadonlyMap<string, readonly number[]>
  /** Folders of each model, absolute paths: those of its versions, and its own. */
  readonly folders: ReadonlyMap<string, readonly string[]>
  /** Error text of each model that cannot be read or has no version to serve. */
  readonly problems: ReadonlyMap<string, string>
}

/**
 * Reads the repositories of `--model-repository`.
 *
 * @returns undefined without any path.
 * @throws ServeError FLAG_INVALID for a repository that cannot be read.
 */
export async function readRepositories(
  paths: readonly string[],
  o: RepositoryReading = {},
): Promise<ReadRepository | undefined> {
  return paths.length === 0 ? undefined : await refusingUnreadable(() => readRepository(paths, o))
}

/** Runs `read`, and converts REPOSITORY_UNREADABLE to FLAG_INVALID of `--model-repository`. Other errors stay as they are. */
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
 * Reads the configuration of every model from config.pbtxt, and completes it from the model's files if it names no inputs or
 * outputs.
 *
 * @throws ServeError REPOSITORY_UNREADABLE for a repository. A fault of one model is among `problems`.
 */
export async function readRepository(
  paths: readonly string[],
  o: RepositoryReading = {},
): Promise<ReadRepository> {
  const configs = new Map<string, ModelConfig>()
  const versions = new Map<string, readonly number[]>()
  const folders = new Map<string, readonly string[]>()
  const problems = new Map<string, string>()
  for (const model of await scanRepositories(paths, o)) {
    const ofVersions = model.versions.map((version) => versionDirectory(model, version))
    folders.set(model.name, [...ofVersions, model.directory])
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
  return { configs, versions, folders, problems }
}

async function readConfig(model: RepositoryModel, o: RepositoryReading): Promise<ModelConfig> {
  if (model.error !== undefined) throw new ServeError('REPOSITORY_UNREADABLE', model.error)
  const parsed =
    model.configText === undefined
      ? undefined
      : parseModelConfig(model.configText, model.configPath)
  const isWhole = parsed !== undefined && parsed.input.length > 0 && parsed.output.length > 0
  if (parsed !== undefined && (isWhole || isEnsembleConfig(parsed))) {
    return { ...parsed, name: parsed.name || model.name }
  }
  const config = await completeConfigOf(model, toCompletion(o))
  if (config !== undefined) return config
  throw new ServeError('CONFIG_INVALID', `'${model.name}' is an ensemble without a graph`)
}

function toCompletion(o: RepositoryReading) {
  const { autoComplete = true, backends = readBackendConfig([]), backendDirectory, unbatched } = o
  const { settings, ...rest } = backends
  return {
    ...rest,
    engines: createEngines({ log: silentLogger, settings, backendDirectory }),
    autoComplete,
    devices: NO_DEVICES,
    ...(unbatched && { unbatched }),
  }
}
