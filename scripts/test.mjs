// Runs test files: npm test, npm run nightly, npm run soak [-- PART-OF-PATH ...]
import { randomInt } from 'node:crypto'
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
    // Its own files, and all other tests that have random inputs or count: ten times as many.
    find: (filters) => findTestFiles(root, [...NIGHTLIES, ...TESTS], filters).filter(isLong),
    env: { TUTTI_TEST_FACTOR: '10' },
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
  const text = readFileSync(join(root, file), 'utf8')
  return (
    /\.nightly\./.test(file) ||
    /\bfc\.(assert|sample)\(|\btest(Seed|Factor)\(|\bTUTTI_SEED\b/.test(text)
  )
}

await runScript(async () => {
  const [first, ...rest] = process.argv.slice(2)
  if (Object.hasOwn(TIERS, first ?? '')) {
    const { find, env, ...options } = TIERS[first]
    // One that failed fails again when it runs once more.
    const { TUTTI_SEED = String(randomInt(2 ** 31)) } = process.env
    console.log(`TUTTI_SEED=${TUTTI_SEED}`)
    return await runTests({ root, files: find(rest), env: { ...env, TUTTI_SEED }, ...options })
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
