// Runs what is too long for every change: npm run nightly [-- PART-OF-PATH ...]
// That is *.nightly.ts, and the properties of all other tests with ten times their runs.
import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runScript } from './setup/failure.mjs'
import { runTests } from './testing/run-tests.mjs'
import { findTestFiles, NIGHTLIES, TESTS } from './testing/test-files.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const LONGEST_FILE_S = 3600
const PROPERTY_FACTOR = 10

await runScript(() =>
  runTests({
    root,
    files: findTestFiles(root, [...NIGHTLIES, ...TESTS], process.argv.slice(2)).filter(isLong),
    env: { TUTTI_PROPERTY_FACTOR: String(PROPERTY_FACTOR) },
    nodeFlags: [`--import=${new URL('testing/longer-properties.mjs', import.meta.url)}`],
    timeoutS: LONGEST_FILE_S,
  }),
)

function isLong(file) {
  return /\.nightly\./.test(file) || /\bfc\.assert\(/.test(readFileSync(join(root, file), 'utf8'))
}
