import { ServeError } from '@tutti/errors'
import { parseJsonConfig, printModelConfig } from '@tutti/model-config'
import { pathProblem, show } from './fetch/tree-plan.ts'

/** The files and the configuration that a load request puts in place of those on disk (triton-semantics 3.3). */
export interface LoadOverrides {
  /** JSON of a ModelConfig; it replaces config.pbtxt until another load brings one, the files change or the model is unloaded. */
  readonly config?: string
  /** Path within the model directory -> contents; with any, the directory on disk is not read at all. */
  readonly files: ReadonlyMap<string, Uint8Array>
}

/**
 * Bounds of a `config`, so that reading it does not hold the process up: entries of `{}` cost far more than text. Real ones
 * have some hundred.
 */
const MAX_CONFIG_CHARACTERS = 256 * 1024
const MAX_CONFIG_OBJECTS = 4096
/** Files of one request; their bytes are bounded by the message that brings them. */
const MAX_FILES = 4096

/** Name of a load request's configuration in messages, which have no file's path for it. */
export const OVERRIDE_PATH = 'the config parameter of the load request'

/**
 * Converts the JSON configuration of a load request to the text format of config.pbtxt.
 *
 * @throws ServeError CONFIG_SYNTAX that names the fault and its place; MESSAGE_TOO_LARGE.
 */
export function toConfigText(json: string): string {
  refuseLargeConfig(json)
  let parsed: unknown
  try {
    parsed = JSON.parse(json)
  } catch (error) {
    throw new ServeError(
      'CONFIG_SYNTAX',
      `Invalid config override: ${ServeError.from(error).message}`,
      {
        cause: error,
      },
    )
  }
  try {
    return printModelConfig(parseJsonConfig(parsed))
  } catch (error) {
    throw ServeError.from(error).withPrefix('Invalid config override: ')
  }
}

/** @throws ServeError MESSAGE_TOO_LARGE */
function refuseLargeConfig(json: string): void {
  const got = `load parameter 'config' has`
  if (json.length > MAX_CONFIG_CHARACTERS) {
    const text = `${got} ${json.length} characters, want at most ${MAX_CONFIG_CHARACTERS}`
    throw new ServeError('MESSAGE_TOO_LARGE', text, { details: { field: 'config' } })
  }
  const count = json.match(/[[{]/g)?.length ?? 0
  if (count > MAX_CONFIG_OBJECTS) {
    const text = `${got} ${count} objects and arrays, want at most ${MAX_CONFIG_OBJECTS}`
    throw new ServeError('MESSAGE_TOO_LARGE', text, { details: { field: 'config' } })
  }
}

/**
 * Checks the files of a load request, before any is written.
 *
 * @throws ServeError INVALID_PARAMETER if files come without `config`, if there are too many, or for a path that leads out of the
 * directory, is too long or is the directory of another file.
 */
export function checkOverrides({ config, files }: LoadOverrides): void {
  if (files.size === 0) return
  if (config === undefined) {
    const text = "Load parameter 'config' must be specified for model file override"
    throw new ServeError('INVALID_PARAMETER', text, { details: { field: 'config' } })
  }
  if (files.size > MAX_FILES) {
    throw new ServeError('INVALID_PARAMETER', `got ${files.size} files, want at most ${MAX_FILES}`)
  }
  const directories = new Set<string>()
  for (const path of files.keys()) {
    const fault = pathProblem(path)
    if (fault !== undefined) throw refusal(path, fault)
    const segments = path.split('/')
    for (let i = 1; i < segments.length; i++) directories.add(segments.slice(0, i).join('/'))
  }
  for (const path of files.keys()) {
    if (directories.has(path))
      throw refusal(path, 'another file lies in it, want a directory or a file')
  }
}

function refusal(path: string, problem: string): ServeError {
  const field = `file:${show(path)}`
  return new ServeError('INVALID_PARAMETER', `load parameter '${field}': ${problem}`, {
    details: { field },
  })
}
