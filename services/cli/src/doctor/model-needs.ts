import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createEngines, type Engines, selectEngine } from '@tutti/backends'
import { findEngine, PYTHON_ENGINE } from '@tutti/engines'
import { ServeError } from '@tutti/errors'
import {
  isEnsembleConfig,
  type ModelConfig,
  parseModelConfig,
  plainName,
  selectBackend,
} from '@tutti/model-config'
import { type RepositoryModel, type ScanOptions, scanRepositories } from '@tutti/repository'

/** Name of the need for a GPU. Other needs have the names of engines. */
export const GPU = 'gpu'

/** The needs of the models of repositories. */
export interface ModelNeeds {
  /** Names of models by their need: the backend of an engine, or `GPU`. */
  readonly models: ReadonlyMap<string, readonly string[]>
  /** Problem of a model, by the name of the model. */
  readonly problems: ReadonlyMap<string, string>
}

/** A Python environment that a model brings. */
const OWN_ENVIRONMENT = 'EXECUTION_ENV_PATH'

/**
 * Reads what the models of repositories need, from their configurations and the names of their files. No model is loaded.
 *
 * @throws ServeError REPOSITORY_UNREADABLE
 */
export async function readModelNeeds(
  repositories: readonly string[],
  o: ScanOptions & { readonly backendDirectory: string },
): Promise<ModelNeeds> {
  const engines = createEngines({ backendDirectory: o.backendDirectory })
  const models = new Map<string, string[]>()
  const problems = new Map<string, string>()
  for (const model of await scanRepositories(repositories, o)) {
    try {
      for (const need of await needsOf(model, engines)) {
        models.set(need, [...(models.get(need) ?? []), model.name])
      }
    } catch (error) {
      problems.set(model.name, ServeError.from(error).message)
    }
  }
  return { models, problems }
}

/** @throws ServeError if the configuration cannot be read, or no engine serves the model. */
async function needsOf(model: RepositoryModel, engines: Engines): Promise<readonly string[]> {
  if (model.error !== undefined) throw new ServeError('REPOSITORY_UNREADABLE', model.error)
  const { configText, configPath, name } = model
  const config = configText === undefined ? undefined : parseModelConfig(configText, configPath)
  if (config !== undefined && isEnsembleConfig(config)) return []
  const { backend } = selectBackend(config, plainName(name), await firstVersion(model))
  await selectEngine(engines, backend, name)
  return [engineNeed(backend, config), usesGpu(config) ? GPU : undefined].filter(
    (need) => need !== undefined,
  )
}

function engineNeed(backend: string, config: ModelConfig | undefined): string | undefined {
  const engine = findEngine(backend) ?? PYTHON_ENGINE
  const hasOwn = config?.parameters[OWN_ENVIRONMENT]?.string_value
  return engine.modules !== undefined && hasOwn ? undefined : engine.backend
}

function usesGpu(config: ModelConfig | undefined): boolean {
  return config?.instance_group.some(({ kind }) => kind === 'KIND_GPU') === true
}

/** Lists the files by which a model without a configuration is known. */
async function firstVersion({ directory, versions }: RepositoryModel): Promise<readonly string[]> {
  const [version] = versions
  return version === undefined ? [] : await readdir(join(directory, String(version)))
}
