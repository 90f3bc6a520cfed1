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
import { type RepositoryModel, type ScanOptions, scanRepositories } from '@tutti/repository'
import { type BackendConfig, completeConfigOf, readBackendConfig } from '@tutti/step'
import type { LocatedManifest } from './parse-manifests.ts'

/** How the models will be read when they are served: what completes a configuration depends on it. */
export interface RepositoryReading extends ScanOptions {
  /** Auto-completion, which `--disable-auto-complete-config` turns off; true if absent. */
  readonly autoComplete?: boolean
  /** The defaults if absent. */
  readonly backends?: BackendConfig
  /** The folder that `--backend-directory` names. */
  readonly backendDirectory?: string
  /** The served names of Models with `maxBatchSize: 0`. */
  readonly unbatched?: ReadonlySet<string>
}

/** How repositories are read for Models: those with `maxBatchSize: 0` are completed without a batch dimension. */
export function readingFor(manifests: readonly LocatedManifest[]): RepositoryReading {
  const names = manifests.flatMap(({ manifest }) =>
    manifest.kind === 'Model' && manifest.spec.maxBatchSize === 0 ? modelNameOf(manifest) : [],
  )
  const said = new Map(names.map((name) => [name, { maxBatchSize: 0 }]))
  return { overrides: toConfigOverrides(said), unbatched: new Set(names) }
}

/** The models that model repositories hold, by directory name. */
export interface ReadRepository {
  /** Completed. */
  readonly configs: ReadonlyMap<string, ModelConfig>
  /** All that are there. */
  readonly versions: ReadonlyMap<string, readonly number[]>
  /** The reason why a model could not be read, by the model's name. */
  readonly problems: ReadonlyMap<string, string>
}

/**
 * Those of `--model-repository`; undefined for none.
 *
 * @throws ServeError FLAG_INVALID for one that cannot be read, which is an error of the command line, as a file is.
 */
export async function readRepositories(
  paths: readonly string[],
  o: RepositoryReading = {},
): Promise<ReadRepository | undefined> {
  return paths.length === 0 ? undefined : await refusingUnreadable(() => readRepository(paths, o))
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
