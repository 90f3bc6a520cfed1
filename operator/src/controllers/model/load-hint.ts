import { MODEL_DIRECTORY_PATTERN } from '../../resources/model-artifacts.ts'

/** Errors that speak of a model repository, or of volumes, where a Model has other words: what to change there. */
const HINTS: readonly (readonly [
  error: RegExp,
  hint: (found: string, storageUri: string | undefined) => string,
])[] = [
  [
    /unexpected directory name '[^']*' for model '([^']*)', directory name must equal model name/,
    (name) => `; its config.pbtxt has this name: want modelName '${name}', or no name there`,
  ],
  [
    /at least one version must be available under the version policy of model '([^']*)'/,
    () =>
      '; want storageUri to name the folder that holds the versions, 1/ say, and versionPolicy to choose one',
  ],
  [
    /('[^']*') cannot (?:run models: |be started \()/,
    () =>
      "; the step's image may be one without Python: want another from step.pythonImage of the chart, or from podTemplate for `main`",
  ],
  [
    /(?:has kind KIND_GPU but no GPUs are available|unsupported gpu id \d+\.[^(]*) \((no accelerator)/,
    () =>
      '; its config.pbtxt wants GPUs: want accelerator { count: 1 }, or instances with a count and the kind KIND_CPU',
  ],
  [
    /unsupported gpu id (\d+)\.[^(]* \(accelerator /,
    (id) =>
      `; its config.pbtxt names GPUs: want accelerator.count above ${id}, or instances with a count and the kind KIND_GPU, which is each device of the pod`,
  ],
  // Pods know the folder by our name for it.
  [
    new RegExp(`'(${MODEL_DIRECTORY_PATTERN})' is empty`),
    (_, uri) =>
      uri === undefined ? '' : `; that is storageUri '${uri}', want the model's folder there`,
  ],
  [
    new RegExp(`ENOTDIR[^']*'(${MODEL_DIRECTORY_PATTERN})'`),
    (_, uri) =>
      uri === undefined ? '' : `; that is storageUri '${uri}', want a folder there, not a file`,
  ],
  [
    /cp: can(?:no|')t stat '([^']*)'/,
    (_, uri) =>
      uri === undefined ? '' : `; that is storageUri '${uri}', want a folder that the image has`,
  ],
  [
    /exec: "(cp)": executable file not found/,
    () => '; want an image in storageUri that has the program `cp`, which copies its files',
  ],
  // The kubelet's: it would make the folder, in a volume that is mounted to be read only.
  [/subPath .*for volumeMount "(model)"/, () => '; want a PATH in storageUri that the claim has'],
]

/** Characters that are searched: what a pod says is its tenant's, and may be made to be slow to search. */
const MOST_SEARCHED = 4096

/**
 * Appends a hint to a known error of a fetch, mount or load: which field of the Model to change. Other errors stay as they are.
 * Pure.
 *
 * @param storageUri - the storageUri for which the error came; undefined if it may have been another one.
 */
export function withLoadHint(error: string, storageUri: string | undefined): string {
  const text = error.slice(0, MOST_SEARCHED)
  for (const [pattern, hint] of HINTS) {
    const [, found] = pattern.exec(text) ?? []
    if (found !== undefined) return `${error}${hint(found, storageUri)}`
  }
  return error
}
