// Runs the tests that are too long for every change: npm run nightly [-- PART-OF-PATH ...]
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runScript } from './setup/failure.mjs'
import { runTests } from './testing/run-tests.mjs'
import { findTestFiles, NIGHTLIES } from './testing/test-files.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const LONGEST_FILE_S = 3600

await runScript(() =>
  runTests({
    root,
    files: findTestFiles(root, NIGHTLIES, process.argv.slice(2)),
    timeoutS: LONGEST_FILE_S,
  }),
)
