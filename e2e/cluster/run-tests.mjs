import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SetupFailure } from '../../scripts/setup/failure.mjs'
import { withLock } from '../../scripts/setup/lock.mjs'
import { toolEnvironment } from '../../scripts/setup/node-24.mjs'
import { ensurePython } from '../../scripts/setup/python.mjs'
import { runTap } from '../../scripts/testing/run-tap.mjs'
import { findTestFiles } from '../../scripts/testing/test-files.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..')
const PATTERNS = ['e2e/src/cluster/*.e2e.ts']
const LONGEST_FILE_S = 1800

/** @throws SetupFailure if there is none. */
function clusterTests(filters) {
  const files = findTestFiles(root, PATTERNS, filters)
  if (files.length === 0) throw new SetupFailure(`No test matches ${filters.join(', ')}.`)
  return files
}

/** Whether one of the tests installs Tutti. */
export function needImages(filters) {
  return clusterTests(filters).some((file) => {
    return readFileSync(join(root, file), 'utf8').includes('withoutTuttiImages(')
  })
}

/**
 * Runs the tests of a cluster that is up.
 *
 * @param {ReturnType<typeof import('./cluster.mjs').openCluster>} cluster
 * @param {readonly string[]} filters - parts of paths; all files if there is none.
 * @param {{ onLine?: (line: string) => void, signal?: AbortSignal }} [o] - `onLine` takes what tap writes; `signal` ends the wait
 *   for another run. Signals of the process end the tests themselves.
 * @returns {Promise<number>} the exit code.
 */
export async function runClusterTests(cluster, filters, { onLine, signal } = {}) {
  const files = clusterTests(filters)
  const env = {
    ...toolEnvironment(root),
    ...(await cluster.testEnvironment()),
    TUTTI_TEST_PYTHON: await ensurePython(join(root, 'scripts', 'test-requirements.txt')),
  }
  // Two runs in one checkout would mix their results.
  return await withLock(
    join(root, '.tap', 'test.lock'),
    () =>
      runTap({
        root,
        files,
        // One after the other: they share the cluster.
        args: ['--disable-coverage', '--jobs=1', `--timeout=${LONGEST_FILE_S}`],
        env,
        onLine,
        endsOnSignal: true,
      }),
    () => console.error('Waiting for another test run in this checkout to end ...'),
    signal,
  )
}
