import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { delimiter, dirname, isAbsolute, join } from 'node:path'

/** The system's own, which has what the system's packages bring. */
const SYSTEM_FOLDER = '/usr/bin'
const NAMES = ['python3', 'python']

/**
 * Lists every interpreter on PATH, as paths: each `python3` in the order of PATH, then that of the system, then each `python`.
 *
 * @param path - value of PATH. Relative folders are left out, since processes of models start elsewhere.
 * @param system - folder of the system's programs; another one for tests.
 */
export function pythonsOnPath(path: string, system = SYSTEM_FOLDER): readonly string[] {
  const folders = [...path.split(delimiter).filter((folder) => isAbsolute(folder)), system]
  const found = new Map<string, string>()
  for (const file of NAMES.flatMap((name) => folders.map((folder) => join(folder, name)))) {
    const identity = identify(file)
    if (identity !== undefined && !found.has(identity)) found.set(identity, file)
  }
  return [...found.values()]
}

/**
 * Identifies an interpreter by its file and its folder: a virtual environment links to the interpreter that made it, and has
 * other packages.
 */
function identify(file: string): string | undefined {
  try {
    accessSync(file, constants.X_OK)
    if (!statSync(file).isFile()) return undefined
    return `${realpathSync(dirname(file))}\0${realpathSync(file)}`
  } catch {
    // There is none, or this user may not run it.
    return undefined
  }
}
