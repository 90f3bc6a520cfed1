import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PYTHON_BACKEND_FILE, requireRuntime } from '../model-file.ts'
import type { PythonProgram } from './python-engine.ts'

/** Triton's small backends, which come with this package. */
const STOCK_DIRECTORY = fileURLToPath(new URL('../../python/backends', import.meta.url))

/**
 * Finds the folder of a python-based backend with `NAME/model.py`: in the directory that a user names, else among those of this
 * package.
 *
 * @returns undefined if there is none, or if the name cannot be that of a folder.
 */
export function findPythonBackend(name: string, directory: string | undefined): string | undefined {
  if (name === '' || name.startsWith('.') || /[/\\\0]/.test(name)) return undefined
  const given = directory === undefined ? [] : [resolve(directory)]
  return [...given, STOCK_DIRECTORY]
    .map((each) => join(each, name))
    .find((folder) => existsSync(join(folder, PYTHON_BACKEND_FILE)))
}

/**
 * Makes the program that the processes of a python-based backend run. Its class is in the backend's folder, never in the model's.
 */
export function pythonBackendProgram({
  backend,
  folder,
}: {
  readonly backend: string
  readonly folder: string
}): PythonProgram {
  return {
    backend,
    completesConfig: true,
    sharesInterpreters: true,
    modules: ['numpy'],
    runtime: PYTHON_BACKEND_FILE,
    modelFile(source) {
      requireRuntime(source, PYTHON_BACKEND_FILE, folder)
      return join(folder, PYTHON_BACKEND_FILE)
    },
  }
}
