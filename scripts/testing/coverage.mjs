import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runChild } from '../setup/child.mjs'

/** In percent, over everything that tests load, of all packages together. */
const GATE = { lines: 90, branches: 85, functions: 90, statements: 90 }
const LEFT_OUT = [
  '**/*.test.ts',
  '**/*.soak.ts',
  '**/testing/**',
  '**/gen/**',
  'e2e/**',
  'bench/**',
  'scripts/**',
]

const folderOf = (root) => join(root, '.tap', 'coverage')

/** Begins anew; what runs with the environment that this returns writes what it covers as it ends. */
export function collectCoverage(root) {
  rmSync(folderOf(root), { recursive: true, force: true })
  mkdirSync(folderOf(root), { recursive: true })
  return { NODE_V8_COVERAGE: folderOf(root) }
}

/** Prints the coverage. @returns {Promise<string | undefined>} why it is too low. */
export async function checkCoverage(root) {
  const c8 = join(root, 'node_modules', 'c8', 'bin', 'c8.js')
  const args = [
    'report',
    '--reporter=text-summary',
    '--check-coverage',
    '--merge-async',
    `--temp-directory=${folderOf(root)}`,
    ...Object.entries(GATE).map(([name, percent]) => `--${name}=${percent}`),
    ...LEFT_OUT.map((pattern) => `--exclude=${pattern}`),
  ]
  const code = await runChild(process.execPath, [c8, ...args], { cwd: root })
  return code === 0 ? undefined : 'the coverage is too low'
}
