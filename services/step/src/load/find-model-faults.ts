import { type Engines, NO_DEVICES, selectEngine } from '@tutti/backends'
import { findEngine } from '@tutti/engines'
import { ServeError } from '@tutti/errors'
import {
  chooseVersions,
  faultsWhenRead,
  type ModelConfig,
  plainName,
  selectVersions,
  validateWhenLoaded,
} from '@tutti/model-config'
import {
  type RepositoryModel,
  readLabels,
  resolveModelFile,
  versionDirectory,
} from '@tutti/repository'
import { completeVersion, type PreparedModel, readModelConfig } from './prepare-model.ts'
import { requireSupported } from './supported-settings.ts'

/** The configuration and the faults that the files of a model show, without a load. */
export interface ModelFaults {
  /** Completed and normalised; absent if it cannot be read. Without inputs or outputs where only code says them. */
  readonly config?: ModelConfig
  readonly faults: readonly ServeError[]
}

/**
 * Finds what would keep a model from being loaded, as far as its configuration and the names of its files show it. No model is
 * loaded and no code of one runs. Which devices there are does not count.
 *
 * @returns undefined for an ensemble.
 */
export async function findModelFaults(
  model: RepositoryModel,
  engines: Engines,
): Promise<ModelFaults | undefined> {
  const faults: ServeError[] = []
  const attempt = async <T>(check: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await check()
    } catch (error) {
      faults.push(ServeError.from(error))
      return undefined
    }
  }
  const reading = { engines: withoutCode(engines), autoComplete: true, devices: NO_DEVICES }
  const read = await attempt(() => readModelConfig(model, reading))
  if (read === undefined) return faults.length === 0 ? undefined : { faults }
  const versions = chooseVersions(read.config.version_policy, model.versions)
  const completed = await completedOf(read, versions, reading, faults)
  const isWhole = completed.size === versions.length
  const config = (isWhole ? [...completed.values()].at(-1) : undefined) ?? read.config
  for (const one of new Set([...completed.values(), config])) {
    faults.push(...faultsWhenRead(one, plainName(model.name)))
    await attempt(() => validateWhenLoaded(one))
    await attempt(() => requireSupported(one))
    await attempt(() => readLabels(model, one.output))
  }
  // A platform that is not known has been told of.
  if (config.backend !== '') await attempt(() => selectEngine(engines, config.backend, model.name))
  await attempt(() => selectVersions(config, model.versions))
  if (!isWhole) return { config, faults: eachOnce(faults) }
  const engine = await engines.get(config.backend)
  for (const [version, one] of completed) {
    await attempt(async () => {
      // The models of a backend that is Python code itself may have no file of their own.
      if (findEngine(one.backend) !== undefined) {
        await resolveModelFile(model, version, one.default_model_filename)
      }
      engine?.check?.(sourceOf(model, version, one))
    })
  }
  return { config, faults: eachOnce(faults) }
}

/** Lists each fault once: several versions may have the same. */
function eachOnce(faults: readonly ServeError[]): readonly ServeError[] {
  return [...new Map(faults.map((fault) => [fault.message, fault])).values()]
}

function sourceOf(model: RepositoryModel, version: number, config: ModelConfig) {
  const { name, directory: modelDirectory } = model
  const directory = versionDirectory(model, version)
  return { name, version, config, modelDirectory, versionDirectory: directory }
}

/** Completes the configurations of versions. A version that cannot be completed adds a fault. */
async function completedOf(
  read: PreparedModel,
  versions: readonly number[],
  o: Parameters<typeof completeVersion>[2],
  faults: ServeError[],
): Promise<ReadonlyMap<number, ModelConfig>> {
  const configs = new Map<number, ModelConfig>()
  for (const version of versions) {
    const completed = await completeVersion(read, version, o).catch((error: unknown) =>
      ServeError.from(error),
    )
    if (completed instanceof ServeError) faults.push(completed)
    else configs.set(version, completed)
  }
  return configs
}

/** Selects the engines that complete configurations from model files without running their code. */
function withoutCode(engines: Engines): Engines {
  return {
    get: async (backend) => {
      const engine = await engines.get(backend)
      return engine?.complete === undefined ? engine : undefined
    },
    keys: () => engines.keys(),
  }
}
