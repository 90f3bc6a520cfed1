// needs: nats, python
import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { delimiter, dirname } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { SKIP } from './processes/harness.ts'
import { ROOT } from './serving.ts'
import { PYTHON } from './triton-client.ts'

t.setTimeout(600_000)

const SAMPLES = `${ROOT}model_repository/.samples`
const RESTORED = `${ROOT}out/restored.png`
const needsPython = PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set'

/** Runs the demo as `npm run demo` does once everything is installed, and returns what it prints. */
async function demo(path: string, ...flags: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['scripts/demo.mjs', ...flags], {
    cwd: ROOT,
    env: { ...process.env, PATH: path },
  })
  return stdout
}

function count(text: string, part: string): number {
  return text.split(part).length - 1
}

// Executes README.md: npm run demo
// Executes docs/processes.md: npm run demo
await t.test('its commands are those of README.md and docs/processes.md', async (t) => {
  for (const [page, command] of [
    ['README.md', 'npm run demo'],
    ['docs/processes.md', 'npm run demo -- --processes'],
  ]) {
    t.match(await readFile(`${ROOT}${page}`, 'utf8'), `\`\`\`sh\n${command}\n\`\`\``)
  }
})

const withPython = [dirname(PYTHON ?? ''), process.env['PATH']].join(delimiter)
const words = (await readFile(`${SAMPLES}/words.txt`, 'utf8')).trim().split('\n')
const read = `\nread: ${words.join(' ')} (${words.length} of the ${words.length} words are right)\n`

await t.test('the demo restores a face and reads words', { skip: needsPython }, async (t) => {
  await rm(RESTORED, { force: true })
  const text = await demo(withPython)
  t.match(text, '\nens_face_restoration_v2.1: 512 x 512 picture restored in ')
  t.match(text, read)
  t.notMatch(text, 'NaN', 'every step has its times')
  t.notMatch(text, 'skipped')
  t.match((await readFile(RESTORED)).subarray(1, 4).toString(), 'PNG')
})

await t.test('without Python it restores the face and says what it skipped', async (t) => {
  const text = await demo('')
  t.match(text, '\nens_face_restoration_v2.1: 512 x 512 picture restored in ')
  t.match(text, '\nensemble_model: skipped, for it needs a python3 with NumPy and Pillow')
  t.match(text, 'found none')
})

await t.test('it does both through two routers', { skip: SKIP || needsPython }, async (t) => {
  const text = await demo(withPython, '--processes')
  t.equal(count(text, '\nstep   step-'), 8, 'a step for each model')
  t.equal(count(text, '\nens_face_restoration_v2.1: 512 x 512 picture restored in '), 2)
  t.equal(count(text, read), 2)
  t.notMatch(text, 'NaN')
})
