import { join, resolve } from 'node:path'
import { toolEnvironment } from '../../scripts/setup/node-24.mjs'
import { findOcr } from '../../scripts/setup/ocr.mjs'
import { ensurePython } from '../../scripts/setup/python.mjs'
import { findReleasePrograms } from '../../scripts/setup/release-programs.mjs'
import { runTests } from '../../scripts/testing/run-tests.mjs'
import { CLUSTER_TESTS, findTestFiles } from '../../scripts/testing/test-files.mjs'

const root = resolve(import.meta.dirname, '..', '..')
const LONGEST_FILE_S = 1800

/**
 * Runs the tests of a cluster that is up.
 *
 * @param {ReturnType<typeof import('./cluster.mjs').openCluster>} cluster
 * @param {readonly string[]} filters - parts of paths; if there is none, all files but the nightly ones.
 * @param {{ signal?: AbortSignal }} [o] - `signal` ends them.
 * @returns {Promise<number>} the exit code.
 */
export async function runClusterTests(cluster, filters, { signal } = {}) {
  const all = findTestFiles(root, CLUSTER_TESTS, filters)
  const files = filters.length > 0 ? all : all.filter((file) => !file.includes('.nightly.'))
  const env = {
    ...toolEnvironment(root),
    ...(await cluster.testEnvironment()),
    TUTTI_TEST_PYTHON: await ensurePython(join(root, 'scripts', 'test-requirements.txt')),
  }
  return await runTests({
    root,
    files,
    // All of them use the cluster, and share it.
    provide: async (needs) => ({
      ...env,
      ...(needs.includes('registry') && (await findReleasePrograms())),
      ...(needs.includes('ocr') && (await findOcr(root))),
    }),
    jobs: 1,
    // They tell figures.
    hasComments: true,
    timeoutS: LONGEST_FILE_S,
    signal,
  })
}
