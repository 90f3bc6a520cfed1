// The checks that need no program but Node: types, generated files, lint, and the tests that need nothing else: npm run check
import { resolve } from 'node:path'
import { runCaptured } from './setup/child.mjs'
import { runScript } from './setup/failure.mjs'
import { toolEnvironment } from './setup/node-24.mjs'
import { runTests } from './testing/run-tests.mjs'
import { findTestFiles, needsOf, TESTS } from './testing/test-files.mjs'

const root = resolve(import.meta.dirname, '..')
const env = toolEnvironment(root)
/** Those that take more than some seconds each. */
const LONG = /^e2e\/src\/(cancel-and-deadline|drain|limits|model-churn|one-engine)\.test/

await runScript(async () => {
  // The types are right: with-setup.mjs has built everything.
  const generated = await stage('generated files', process.execPath, ['scripts/gen.mjs', '--check'])
  const lint = stage('lint', 'npm', ['run', '--silent', 'lint'])
  const files = findTestFiles(root, TESTS).filter(
    (file) => needsOf(root, file).length === 0 && !LONG.test(file),
  )
  return await runTests({
    root,
    files,
    atEnd: async () => {
      const failed = [generated, await lint].filter((name) => name !== undefined)
      return failed.length === 0 ? undefined : `${failed.join(' and ')} FAILED`
    },
  })
})

/** Runs a command and prints how it went. @returns {Promise<string | undefined>} the stage's name if it failed. */
async function stage(name, command, args) {
  const startedMs = performance.now()
  const { code, written } = await runCaptured(command, args, { cwd: root, env })
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  if (code !== 0) console.log(written)
  console.log(`${code === 0 ? 'ok  ' : 'FAIL'}  ${name}  ${seconds} s`)
  return code === 0 ? undefined : name
}
