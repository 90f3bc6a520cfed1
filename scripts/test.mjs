// README's second command: npm test [-- PART-OF-PATH ...]
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runScript } from './setup/failure.mjs'
import { checkCoverage, collectCoverage } from './testing/coverage.mjs'
import { runTests } from './testing/run-tests.mjs'
import { findTestFiles, TESTS } from './testing/test-files.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')

await runScript(async () => {
  const filters = process.argv.slice(2)
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
