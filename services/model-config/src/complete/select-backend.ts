import { BACKENDS } from '@tutti/engines'
import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '../model/model-config.ts'

/** The names that decide which engine serves a model. Each is '' where Triton leaves it empty. */
export interface BackendChoice {
  readonly backend: string
  readonly platform: string
  /** Name of the model's file or directory within a version directory. */
  readonly modelFilename: string
}

/** Backends and their files, in the order in which Triton looks for them. */
const KNOWN: readonly BackendChoice[] = BACKENDS.flatMap(({ backend, files }) =>
  files.map(({ platform, filename }) => ({ backend, platform, modelFilename: filename })),
)

/** The platform that means an ensemble. */
export const ENSEMBLE_PLATFORM = 'ensemble'

/** Finds the backend of a platform; returns undefined for an unknown platform. */
export function backendOfPlatform(platform: string): string | undefined {
  return KNOWN.find((row) => row.platform !== '' && row.platform === platform)?.backend
}

/** Tells whether Triton ties a backend to certain platforms. */
export function hasOwnPlatforms(backend: string): boolean {
  return KNOWN.some((row) => row.backend === backend && row.platform !== '')
}

function isChosen(row: BackendChoice, given: BackendChoice, files: readonly string[]): boolean {
  if (given.platform !== '') return row.platform === given.platform
  if (given.modelFilename !== '') return row.modelFilename === given.modelFilename
  return files.includes(row.modelFilename)
}

function findRow(given: BackendChoice, files: readonly string[]): BackendChoice | undefined {
  if (given.backend === '') return KNOWN.find((row) => isChosen(row, given, files))
  const rows = KNOWN.filter((row) => row.backend === given.backend)
  // With the backend given, its first row is the default: TorchScript for pytorch.
  return rows.find((row) => isChosen(row, given, files)) ?? rows[0]
}

function givenChoice(config: ModelConfig | undefined): BackendChoice {
  const { backend = '', platform = '', default_model_filename: modelFilename = '' } = config ?? {}
  return { backend, platform, modelFilename }
}

/** Returns the backend of a model without any hint, a custom one: its directory is named `x.<backend>`. */
function customBackend(directoryName: string): BackendChoice {
  const dot = directoryName.indexOf('.')
  if (dot === -1) {
    const text = `Invalid model name: Could not determine backend for model '${directoryName}' with no backend in model configuration. Expected model name of the form 'model.<backend_name>'.`
    throw new ServeError('CONFIG_INVALID', text)
  }
  const backend = directoryName.slice(dot + 1)
  return { backend, platform: '', modelFilename: `model.${backend}` }
}

/**
 * Finds backend, platform and model file of a model, from its configuration first, then from the files in its version
 * directory.
 *
 * @param config - as parsed; undefined if the model has none.
 * @param versionFiles - names of the files in the first version directory.
 * @returns the names that the configuration gives, with the missing ones filled in; backend '' for an ensemble.
 * @throws ServeError CONFIG_INVALID if neither the configuration, the files nor the name of the directory tells the backend.
 */
export function selectBackend(
  config: ModelConfig | undefined,
  directoryName: string,
  versionFiles: readonly string[],
): BackendChoice {
  const given = givenChoice(config)
  if (given.platform === ENSEMBLE_PLATFORM) return given
  const row = findRow(given, versionFiles)
  if (row !== undefined) {
    return {
      backend: given.backend || row.backend,
      platform: given.platform || row.platform,
      modelFilename: given.modelFilename || row.modelFilename,
    }
  }
  const isHintless = given.backend === '' && given.platform === '' && given.modelFilename === ''
  return isHintless ? customBackend(directoryName) : given
}
