// Runs the long tests: npm run soak [-- PART-OF-PATH ...]
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runScript, SetupFailure } from './setup/failure.mjs'
import { findKubeBinaries } from './setup/kube-binaries.mjs'
import { withLock } from './setup/lock.mjs'
import { ensureNatsServer } from './setup/nats-server.mjs'
import { toolEnvironment } from './setup/node-24.mjs'
import { ensurePython } from './setup/python.mjs'
import { runTap } from './testing/run-tap.mjs'
import { findTestFiles } from './testing/test-files.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const PATTERNS = [
  'e2e/src/soak/*.soak.ts',
  'services/*/src/**/*.soak.ts',
  'operator/src/**/*.soak.ts',
]
const LONGEST_FILE_S = 6 * 3600

await runScript(async () => {
  const filters = process.argv.slice(2)
  const files = findTestFiles(root, PATTERNS, filters)
  if (files.length === 0) throw new SetupFailure(`No soak test matches ${filters.join(', ')}.`)
  // The builds of nats-server and Kubernetes, where there are none, go on while pip installs.
  const [natsServer, kube, python] = await Promise.all([
    ensureNatsServer(),
    findKubeBinaries(),
    ensurePython(join(root, 'scripts', 'test-requirements.txt')),
  ])
  // Two runs in one checkout would mix their coverage and results.
  return await withLock(
    join(root, '.tap', 'test.lock'),
    () =>
      runTap({
        root,
        files,
        // One after the other: each wants the machine for itself.
        args: ['--disable-coverage', '--jobs=1', `--timeout=${LONGEST_FILE_S}`],
        env: {
          ...toolEnvironment(root),
          ...kube,
          TUTTI_TEST_PYTHON: python,
          TUTTI_NATS_SERVER: natsServer,
          TUTTI_SOAK: '1',
        },
      }),
    () => console.error('Waiting for another test run in this checkout to end ...'),
  )
})
