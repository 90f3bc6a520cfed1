import { globSync } from 'node:fs'
import { join, sep } from 'node:path'

/**
 * The test files of a checkout, sorted.
 *
 * @param {readonly string[]} patterns - globs, relative to `root`.
 * @param {readonly string[]} filters - a file is kept if its path contains one of them; all are if there is none.
 */
export function findTestFiles(root, patterns, filters) {
  const wanted = filters.map((filter) => filter.replace(/^\.\//, '').replace(/\/+$/, ''))
  return globSync([...patterns], { cwd: root, exclude: (path) => path.endsWith('node_modules') })
    .map((path) => path.split(sep).join('/'))
    .filter((path) => wanted.length === 0 || wanted.some((filter) => path.includes(filter)))
    .toSorted()
}

/** The suite that a test file belongs to: its room, `services/tensor`, or its top folder, `e2e`. */
export function suiteOf(file) {
  const parts = file.split('/')
  return parts[0] === 'services' ? join(parts[0], parts[1]) : parts[0]
}
