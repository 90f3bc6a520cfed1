// README's second command: npm test [-- PART-OF-PATH ...]
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runScript, SetupFailure } from './setup/failure.mjs'
import { findKubeBinaries } from './setup/kube-binaries.mjs'
import { withLock } from './setup/lock.mjs'
import { ensureNatsServer } from './setup/nats-server.mjs'
import { toolEnvironment } from './setup/node-24.mjs'
import { ensurePython } from './setup/python.mjs'
import { findTorch } from './setup/torch.mjs'
import { runTap } from './testing/run-tap.mjs'
import { findTestFiles } from './testing/test-files.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const PATTERNS = [
  'services/*/src/**/*.test.ts',
  'operator/src/**/*.test.ts',
  'e2e/src/**/*.test.ts',
  'e2e/cluster/*.test.mjs',
  'scripts/**/*.test.mjs',
]

await runScript(async () => {
  const filters = process.argv.slice(2)
  const files = findTestFiles(root, PATTERNS, filters)
  if (files.length === 0) throw new SetupFailure(`No test file matches ${filters.join(', ')}.`)
  // The builds of nats-server and Kubernetes, where there are none, go on while pip installs.
  const [natsServer, kube, python, torch] = await Promise.all([
    ensureNatsServer(),
    findKubeBinaries(),
    ensurePython(join(root, 'scripts', 'test-requirements.txt')),
    findTorch({
      installFromPypi: () => ensurePython(join(root, 'scripts', 'test-requirements-torch.txt')),
    }),
  ])
  // Two runs in one checkout would mix their coverage and results.
  return await withLock(
    join(root, '.tap', 'test.lock'),
    () =>
      runTap({
        root,
        files,
        // A part of the tests covers a part of the code; the gate is for all of them.
        args: filters.length > 0 ? ['--disable-coverage', '--allow-incomplete-coverage'] : [],
        env: {
          ...toolEnvironment(root),
          ...torch,
          ...kube,
          TUTTI_TEST_PYTHON: python,
          TUTTI_NATS_SERVER: natsServer,
        },
      }),
    () => console.error('Waiting for another test run in this checkout to end ...'),
  )
})
