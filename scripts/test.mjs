// Runs test files: npm test, npm run nightly, npm run soak [-- PART-OF-PATH ...]
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { runScript } from './setup/failure.mjs'
import { checkCoverage, collectCoverage } from './testing/coverage.mjs'
import { runTests } from './testing/run-tests.mjs'
import { findTestFiles, NIGHTLIES, SOAKS, TESTS } from './testing/test-files.mjs'

const root = resolve(import.meta.dirname, '..')
const HOUR_S = 3600

const TIERS = {
  '--nightly': {
    // Its own files, and the properties of all other tests with ten times their runs.
    find: (filters) => findTestFiles(root, [...NIGHTLIES, ...TESTS], filters).filter(isLong),
    env: { TUTTI_PROPERTY_FACTOR: '10' },
    nodeFlags: [`--import=${new URL('testing/longer-properties.mjs', import.meta.url)}`],
    timeoutS: HOUR_S,
  },
  // Each file wants the machine for itself, and what showed after hours would not show again in as many.
  '--soak': {
    find: (filters) => findTestFiles(root, SOAKS, filters),
    jobs: 1,
    isOnce: true,
    timeoutS: 25 * HOUR_S,
  },
}

function isLong(file) {
  return /\.nightly\./.test(file) || /\bfc\.assert\(/.test(readFileSync(join(root, file), 'utf8'))
}

await runScript(async () => {
  const [first, ...rest] = process.argv.slice(2)
  if (Object.hasOwn(TIERS, first ?? '')) {
    const { find, ...options } = TIERS[first]
    return await runTests({ root, files: find(rest), ...options })
  }
  const filters = first === undefined ? [] : [first, ...rest]
  const files = findTestFiles(root, TESTS, filters)
  // A part of the tests covers a part of the code; the gate is for all of them.
  if (filters.length > 0) return await runTests({ root, files })
  return await runTests({
    root,
    files,
    env: collectCoverage(root),
    atEnd: () => checkCoverage(root),
  })
})
