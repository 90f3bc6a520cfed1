import { globSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { SetupFailure } from '../setup/failure.mjs'
import { NEEDS } from './needs.mjs'

/** The tests of a change, in the order in which they begin: first those that take longest. */
export const TESTS = [
  'e2e/src/**/*.test.ts',
  'operator/src/**/*.test.ts',
  'services/*/src/**/*.test.ts',
  'bench/src/**/*.test.ts',
  'e2e/cluster/*.test.mjs',
  'scripts/**/*.test.mjs',
]

/** Those that run too long for every change. */
export const NIGHTLIES = [
  '{services/*,operator,e2e}/src/**/*.nightly.ts',
  'scripts/**/*.nightly.mjs',
]

/** Those that take hours. */
export const SOAKS = ['{services/*,operator,e2e}/src/**/*.soak.ts', 'scripts/**/*.soak.mjs']

/** Those that need a cluster. */
export const CLUSTER_TESTS = ['e2e/src/cluster/*.e2e.ts']

/**
 * The test files of a checkout, in the order of the patterns, then of their paths.
 *
 * @param {readonly string[]} patterns - globs, relative to `root`.
 * @param {readonly string[]} filters - a file is kept if its path contains one of them; all are if there is none.
 * @throws SetupFailure if there is none.
 */
export function findTestFiles(root, patterns, filters = []) {
  const wanted = filters.map((filter) => filter.replace(/^\.\//, '').replace(/\/+$/, ''))
  const files = patterns.flatMap((pattern) =>
    globSync(pattern, { cwd: root, exclude: (path) => path.endsWith('node_modules') })
      .map((path) => path.split(sep).join('/'))
      .filter((path) => wanted.length === 0 || wanted.some((filter) => path.includes(filter)))
      .toSorted(),
  )
  if (files.length === 0) throw new SetupFailure(`No test file matches ${filters.join(', ')}.`)
  return files
}

/** The suite that a test file belongs to: its package, `services/tensor`, or its top folder, `e2e`. */
export function suiteOf(file) {
  const parts = file.split('/')
  return parts[0] === 'services' ? join(parts[0], parts[1]) : parts[0]
}

/**
 * Reads what a test file declares that it needs.
 *
 * @returns {string[]} keys of NEEDS.
 * @throws SetupFailure if it declares something else.
 */
export function needsOf(root, file) {
  const [first] = readFileSync(join(root, file), 'utf8').split('\n', 1)
  const [, list = ''] = /^\/\/ needs: (.*)$/.exec(first) ?? []
  const needs = list.split(', ').filter((need) => need !== '')
  const unknown = needs.find((need) => !(need in NEEDS))
  if (unknown === undefined) return needs
  throw new SetupFailure(`${file} needs ${unknown}; want of ${Object.keys(NEEDS).join(', ')}.`)
}
