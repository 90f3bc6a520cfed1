import { type Engines, NO_DEVICES, selectEngine } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import {
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
import { readConfig } from './prepare-model.ts'
import { requireSupported } from './supported-settings.ts'

/** What the files of a model show, without a load. */
export interface ModelFaults {
  /** Completed and normalised; absent if it cannot be read. Without inputs or outputs where only code says them. */
  readonly config?: ModelConfig
  readonly faults: readonly ServeError[]
}

/** Backends whose version directories hold one file that the configuration names. */
const WITH_FILE = new Set(['onnxruntime', 'pytorch', 'python'])

/**
 * Finds what would keep a model from being loaded, as far as its configuration and the names of its files show it. No model is loaded and
 * no code of one runs. Which devices there are does not count.
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
  const read = await attempt(() => readConfig(model, reading))
  if (read === undefined) return faults.length === 0 ? undefined : { faults }
  const { config, failure } = read
  if (failure !== undefined) faults.push(failure)
  faults.push(...faultsWhenRead(config, plainName(model.name)))
  await attempt(() => validateWhenLoaded(config))
  await attempt(() => requireSupported(config))
  await attempt(() => readLabels(model, config.output))
  // A platform that is not known has been told of.
  if (config.backend !== '') await attempt(() => selectEngine(engines, config.backend, model.name))
  const versions = (await attempt(() => selectVersions(config, model.versions))) ?? []
  if (failure !== undefined) return { config, faults }
  const engine = engines.get(config.backend)
  for (const version of versions) {
    await attempt(async () => {
      if (WITH_FILE.has(config.backend)) {
        await resolveModelFile(model, version, config.default_model_filename)
      }
      engine?.check?.(sourceOf(model, version, config))
    })
  }
  return { config, faults }
}

function sourceOf(model: RepositoryModel, version: number, config: ModelConfig) {
  const { name, directory: modelDirectory } = model
  const directory = versionDirectory(model, version)
  return { name, version, config, modelDirectory, versionDirectory: directory }
}

/** Those that complete configurations from model files, and none that runs code for it. */
function withoutCode(engines: Engines): Engines {
  return {
    get: (backend) => {
      const engine = engines.get(backend)
      return engine?.complete === undefined ? engine : undefined
    },
    keys: () => engines.keys(),
  }
}
