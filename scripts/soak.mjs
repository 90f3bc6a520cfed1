// Runs the tests that take hours: npm run soak [-- PART-OF-PATH ...]
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runScript } from './setup/failure.mjs'
import { runTests } from './testing/run-tests.mjs'
import { findTestFiles, SOAKS } from './testing/test-files.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const LONGEST_FILE_S = 6 * 3600

await runScript(() =>
  runTests({
    root,
    files: findTestFiles(root, SOAKS, process.argv.slice(2)),
    // Each wants the machine for itself.
    jobs: 1,
    timeoutS: LONGEST_FILE_S,
  }),
)
