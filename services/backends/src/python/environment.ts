import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { makeCached } from './cached-folder.ts'

const PARAMETER = 'EXECUTION_ENV_PATH'
const MODEL_DIRECTORY = '$$TRITON_MODEL_DIRECTORY'

/** Python environment that a model brings: a folder with `bin/python`. */
export interface PythonEnvironment {
  readonly directory: string
  readonly interpreter: string
}

/**
 * Finds the environment that a model's parameters name, and unpacks it if it is an archive.
 *
 * @returns undefined if they name none.
 * @throws ServeError MODEL_LOAD_FAILED if the environment is absent or invalid.
 */
export async function findEnvironment(
  config: ModelConfig,
  modelDirectory: string,
  cache: string,
): Promise<PythonEnvironment | undefined> {
  const given = config.parameters[PARAMETER]?.string_value
  if (given === undefined || given === '') return undefined
  const path = resolve(modelDirectory, given.replaceAll(MODEL_DIRECTORY, modelDirectory))
  // The text is Triton's.
  if (!existsSync(path)) throw refusal(`Failed to get the canonical path for ${path}.`)
  try {
    const found = await stat(path)
    // A device or a pipe may have no end.
    if (!found.isDirectory() && !found.isFile()) throw new Error('want a folder or an archive')
    const directory = found.isDirectory() ? path : await unpackOnce(path, cache)
    return { directory, interpreter: await findInterpreter(directory) }
  } catch (error) {
    const { message } = ServeError.from(error)
    throw refusal(
      `unable to load model '${config.name}', ${PARAMETER} '${path}': ${message}`,
      error,
    )
  }
}

function refusal(text: string, cause?: unknown): ServeError {
  const details = { field: `parameters["${PARAMETER}"]` }
  return new ServeError('MODEL_LOAD_FAILED', text, { cause, details })
}

async function findInterpreter(directory: string): Promise<string> {
  for (const name of ['python3', 'python']) {
    const interpreter = join(directory, 'bin', name)
    const found = await stat(interpreter).catch(() => undefined)
    if (found?.isFile()) return interpreter
  }
  throw new Error(
    'there is no bin/python3 in it, want a virtual environment or a packed one (conda-pack)',
  )
}

/** Running extractions, by archive and cache, so that loads in one process wait for each other. */
const unpacking = new Map<string, Promise<string>>()

function unpackOnce(archive: string, cache: string): Promise<string> {
  const key = JSON.stringify([archive, cache])
  const known = unpacking.get(key)
  if (known !== undefined) return known
  const started = unpackCached(archive, cache).finally(() => unpacking.delete(key))
  unpacking.set(key, started)
  return started
}

async function unpackCached(archive: string, cache: string): Promise<string> {
  return await makeCached(cache, await digestOf(archive), async (directory) => {
    await promisify(execFile)('tar', ['-xf', archive, '-C', directory, '--no-same-owner'])
    // An environment that cannot be used is not kept.
    await findInterpreter(directory)
    await fixPrefixes(directory)
  })
}

/** Runs the script that conda-pack leaves, which writes the place of the environment into its files. */
async function fixPrefixes(directory: string): Promise<void> {
  const script = join(directory, 'bin', 'conda-unpack')
  if ((await stat(script).catch(() => undefined)) === undefined) return
  await promisify(execFile)(await findInterpreter(directory), [script])
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}
