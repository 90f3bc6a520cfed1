import { readdirSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

interface LibraryNames {
  /** Name of the library in the npm package. */
  readonly packaged: string
  /** Names of the library in other folders, such as the one of a wheel. */
  readonly pattern: RegExp
}

const NAMES: Readonly<Record<string, LibraryNames>> = {
  darwin: { packaged: 'libonnxruntime.1.dylib', pattern: /^libonnxruntime(\.\d+)*\.dylib$/ },
  win32: { packaged: 'onnxruntime.dll', pattern: /^onnxruntime\.dll$/ },
}
const LINUX: LibraryNames = {
  packaged: 'libonnxruntime.so.1',
  pattern: /^libonnxruntime\.so(\.\d+)*$/,
}

/** Finds the folder of ONNX Runtime's libraries, in the npm package onnxruntime-node. */
export function ortFolder(): string {
  const entry = createRequire(import.meta.url).resolve('onnxruntime-node')
  return join(dirname(entry), '../bin/napi-v6', process.platform, process.arch)
}

/**
 * Finds ONNX Runtime's library.
 *
 * @param library - path of a library, or of a folder that has one or several, of which the newest counts; absent for that of the npm package.
 * @returns its path. A folder without one gives the path where it is looked for, whose load then fails.
 */
export function findOrtLibrary(library?: string): string {
  const { packaged, pattern } = NAMES[process.platform] ?? LINUX
  if (library === undefined) return join(ortFolder(), packaged)
  if (statSync(library, { throwIfNoEntry: false })?.isDirectory() !== true) return library
  const found = readdirSync(library).filter((name) => pattern.test(name))
  // By number: 1.9 is before 1.24.
  const { compare } = new Intl.Collator('en', { numeric: true })
  return join(library, found.toSorted(compare).at(-1) ?? packaged)
}
