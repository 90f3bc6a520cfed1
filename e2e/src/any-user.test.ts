// needs: python
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { ROOT, runProgram, serve } from './serving.ts'
import { PYTHON, PYTHON_FLAGS, runTritonChecks } from './triton-client.ts'

/** A user of a namespace on OpenShift, and the group of all of them. No passwd has the user. */
const WITHIN = ['unshare', '--map-user=1000730000', '--map-group=0']
const PROGRAMS = ['operator', 'services/router', 'services/step']

/** Why programs cannot run as that user here, or false. */
function whyNot(): string | false {
  const [program = '', ...args] = WITHIN
  const { status, stdout, stderr, error } = spawnSync(program, [...args, 'id', '-u'], {
    encoding: 'utf8',
  })
  if (status === 0 && stdout.trim() === '1000730000') return false
  return `no user namespace can be made here: ${(error?.message ?? stderr).trim()}`
}

const skip = whyNot()

await t.test('every program of the images starts as a user without a name', { skip }, async (t) => {
  const [unshare = '', ...args] = WITHIN
  // As the images set them.
  const env = { PATH: process.env['PATH'], HOME: '/tmp', USER: 'tutti' }
  for (const program of PROGRAMS) {
    const run = [...args, process.execPath, `${ROOT}${program}/dist/main.js`, '--help']
    const { code, err } = await runProgram(unshare, run, { env })
    t.equal(code, 0, `${program}: ${err}`)
  }
})

await t.test(
  'Python models serve as a user without a name',
  { skip: skip || (PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set') },
  async (t) => {
    const serving = await serve(t, {
      repositories: ['model_repository/.variants/fixtures/python'],
      flags: PYTHON_FLAGS,
      within: WITHIN,
      env: { HOME: t.testdir({}), USER: 'tutti' },
    })
    const metrics = `--metrics=127.0.0.1:${serving.metricsPort}`
    await runTritonChecks(t, 'python_models.py', serving, [metrics])
  },
)
