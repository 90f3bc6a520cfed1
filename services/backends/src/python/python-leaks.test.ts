import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import {
  answerWith,
  bytesRequestInput,
  pythonModel,
  TEST_PYTHON,
  WITHOUT_PYTHON,
  writePythonModel,
} from '../testing/python-model.ts'
import { createPythonEngine } from './python-engine.ts'

const LOADS = 60
const CRASHES = 50

interface Held {
  readonly files: number
  readonly arenas: number
  readonly instances: number
}

/** What this process holds, and what its zygote's children are. */
async function held(): Promise<Held> {
  // One after the other: files that are being read are held, too.
  const files = await readdir('/proc/self/fd')
  const maps = await readFile('/proc/self/maps', 'utf8')
  const children = await readFile(`/proc/self/task/${process.pid}/children`, 'utf8')
  const zygotes = children.split(' ').filter((pid) => pid.trim() !== '')
  const below = await Promise.all(
    zygotes.map((pid) => readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')),
  )
  return {
    files: files.length,
    arenas: maps.split('\n').filter((line) => line.includes('tutti-arena')).length,
    instances: below
      .join(' ')
      .split(' ')
      .filter((pid) => pid.trim() !== '').length,
  }
}

const LONGEST_MS = 60_000
const EVERY_MS = 20

/**
 * Waits until no more is held than there was. Pipes of processes that have ended are closed a little later, those of an
 * earlier one maybe after `before` was taken; what leaks is never given back.
 */
async function settles(t: Test, before: Held, what: string): Promise<void> {
  for (let waited = 0; ; waited += EVERY_MS) {
    const now = await held()
    const files = Math.max(now.files, before.files)
    const isOver = waited >= LONGEST_MS
    if (isOver || isDeepStrictEqual({ ...now, files }, before)) {
      t.same({ ...now, files }, before, what)
      return
    }
    await delay(EVERY_MS)
  }
}

const skip =
  WITHOUT_PYTHON || (process.platform !== 'linux' && 'only Linux tells what a process holds')

await t.test('loads, unloads and crashes leave nothing behind', { skip }, async (t) => {
  const code = pythonModel(
    `def execute(self, requests):
    x = pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()
    if x[0] == 66:
        os.kill(os.getpid(), signal.SIGKILL)
    return self.answer(requests)

${answerWith('x').replace('def execute', 'def answer')}`,
  )
  const source = await writePythonModel(t, code)
  const engine = createPythonEngine({
    interpreter: TEST_PYTHON ?? '',
    settings: { restartFirstMs: 0, restartLongestMs: 0 },
  })
  const large = stepRequest([
    { name: 'x', datatype: 'UINT8', shape: [100_000], data: new Uint8Array(100_000) },
  ])
  const load = async () => {
    const model = await engine.load(source, { instances: 1 })
    await executeOnce(model, [large])
    return model
  }
  // The zygote and what is made once come with the first.
  await (await load()).close()
  const before = await held()
  for (let i = 0; i < LOADS; i += 1) await (await load()).close()
  await settles(t, before, `${LOADS} loads and unloads`)
  const model = await load()
  const loaded = await held()
  t.equal(loaded.arenas, 1)
  for (let i = 0; i < CRASHES; i += 1) {
    const [response] = await executeOnce(model, [stepRequest([bytesRequestInput(66)])])
    t.match(response?.error?.message, /was killed \(SIGKILL\)/)
  }
  await executeOnce(model, [large])
  await settles(t, loaded, `${CRASHES} crashes`)
  await model.close()
  await settles(t, before, 'the end')
})
