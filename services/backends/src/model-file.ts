import { readFileSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { ServeError } from '@tutti/errors'
import type { ModelVersionSource } from '@tutti/model-config'
import { refuseConfig } from './config-fields.ts'

/** The one file of every python-based backend, in the folder of its name. */
export const PYTHON_BACKEND_FILE = 'model.py'

/**
 * Finds the path of a version's model file, which need not exist.
 *
 * @param filename - of a model whose configuration names none.
 * @throws ServeError MODEL_LOAD_FAILED if it is outside of the version directory.
 */
export function modelPath(source: Omit<ModelVersionSource, 'revision'>, filename: string): string {
  const wanted = source.config.default_model_filename || filename
  return pathInVersion(source, 'default_model_filename', wanted)
}

/** Finds the path of a file that a field names. @throws ServeError MODEL_LOAD_FAILED if it is outside of the version directory. */
export function pathInVersion(
  { name, versionDirectory }: Pick<ModelVersionSource, 'name' | 'versionDirectory'>,
  field: string,
  wanted: string,
): string {
  const path = resolve(versionDirectory, wanted)
  if (!relative(versionDirectory, path).startsWith('..')) return path
  const problem = `${field} '${wanted}' is outside the version directory`
  return refuseConfig(field, `unable to load model '${name}', ${problem}`)
}

/** Bytes within which a pointer of Git LFS fits. @see Git LFS specification, The Pointer */
const MAX_POINTER_BYTES = 1024
const POINTER_BEGIN = 'version https://git-lfs.github.com/spec/'

/**
 * Refuses the pointer that a clone without Git LFS has in the place of a model file.
 *
 * @param path - of a file that need not exist.
 * @throws ServeError MODEL_LOAD_FAILED
 */
export function refuseGitLfsPointer(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat?.isFile() || stat.size > MAX_POINTER_BYTES) return
  if (!readFileSync(path, 'latin1').startsWith(POINTER_BEGIN)) return
  const text = `model file '${path}' is a pointer of Git LFS, want the file itself: run 'git lfs pull' in its repository`
  throw new ServeError('MODEL_LOAD_FAILED', text)
}

/**
 * Refuses a model whose `runtime` is not the one that serves it.
 *
 * @param folder - where else Triton would look.
 * @throws ServeError MODEL_LOAD_FAILED, code INVALID_ARGUMENT, with Triton's text.
 */
export function requireRuntime(
  { name, config, versionDirectory, modelDirectory }: Omit<ModelVersionSource, 'revision'>,
  known: string,
  folder: string,
): void {
  const { runtime } = config
  if (runtime === '' || runtime === known) return
  const text =
    runtime === PYTHON_BACKEND_FILE
      ? `unable to find Python backend based backend library '${runtime}' for model '${name}', searched: '${join(folder, runtime)}'`
      : `unable to find backend library '${runtime}' for model '${name}', searched: '${versionDirectory}' '${modelDirectory}' '${folder}' `
  refuseConfig('runtime', text)
}
