import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import { createPythonEngine } from '../python/python-engine.ts'
import { executeOnce } from './execute.ts'
import { stepRequest } from './model-source.ts'
import {
  answerWith,
  bytesRequestInput,
  pythonModel,
  TEST_PYTHON,
  WITHOUT_PYTHON,
  writePythonModel,
} from './python-model.ts'

/** Why what a process holds cannot be counted here, or false. */
export const WITHOUT_CHURN =
  WITHOUT_PYTHON || (process.platform !== 'linux' && 'only Linux tells what a process holds')

/** Counts of what this process holds for its Python models. */
export interface Held {
  readonly files: number
  readonly arenas: number
  /** Children of zygotes. */
  readonly instances: number
  readonly sharedFiles: number
}

/** Loads and unloads a Python model, and has its process killed; restarts do not wait. */
export class PythonChurn {
  readonly #load: () => Promise<LoadedModel>

  private constructor(load: () => Promise<LoadedModel>) {
    this.#load = load
  }

  /** When it resolves, the zygote and what is made once are there. */
  static async open(t: Test): Promise<PythonChurn> {
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
    const churn = new PythonChurn(() => engine.load(source, { instances: 1 }))
    await churn.loads(1)
    return churn
  }

  /** Loads the model, asks it once, with a tensor in shared memory, and unloads it, so many times. */
  async loads(times: number): Promise<void> {
    for (let i = 0; i < times; i += 1) await (await this.load()).close()
  }

  async load(): Promise<LoadedModel> {
    const model = await this.#load()
    await executeOnce(model, [LARGE])
    return model
  }

  /** Has the model's process killed by a request, so many times; then it serves again. */
  async crashes(t: Test, model: LoadedModel, times: number): Promise<void> {
    let explained = 0
    for (let i = 0; i < times; i += 1) {
      const [response] = await executeOnce(model, [stepRequest([bytesRequestInput(66)])])
      explained += response?.error?.message.includes('was killed (SIGKILL)') === true ? 1 : 0
    }
    t.equal(explained, times, 'each request that killed its process was told so')
    await executeOnce(model, [LARGE])
  }
}

const LARGE = stepRequest([
  { name: 'x', datatype: 'UINT8', shape: [100_000], data: new Uint8Array(100_000) },
])

/** Counts what this process holds now. */
export async function held(): Promise<Held> {
  // One after the other: files that are being read are held, too.
  const files = await readdir('/proc/self/fd')
  const maps = await readFile('/proc/self/maps', 'utf8')
  const instances = await instancePids()
  const shared = await readdir('/dev/shm').catch(() => [])
  return {
    files: files.length,
    arenas: maps.split('\n').filter((line) => line.includes('tutti-arena')).length,
    instances: instances.length,
    sharedFiles: shared.filter((name) => name.includes('tutti')).length,
  }
}

/** The processes of this process's Python models. */
export async function instancePids(): Promise<readonly number[]> {
  const zygotes = await childrenOf(process.pid)
  return (await Promise.all(zygotes.map(childrenOf))).flat()
}

async function childrenOf(pid: number): Promise<readonly number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return text.split(' ').map(Number).filter(Boolean)
}

const LONGEST_MS = 60_000
const EVERY_MS = 20

/**
 * Waits until no more is held than there was. Pipes of processes that have ended are closed a little later, those of an
 * earlier one maybe after `before` was taken, and shared files may be another program's; what leaks is never given back.
 */
export async function settles(t: Test, before: Held, what: string): Promise<void> {
  for (let waited = 0; ; waited += EVERY_MS) {
    const now = await held()
    const isOver = waited >= LONGEST_MS
    const files = Math.max(now.files, before.files)
    const sharedFiles = Math.max(now.sharedFiles, before.sharedFiles)
    const seen = { ...now, files, sharedFiles }
    if (isOver || isDeepStrictEqual(seen, before)) {
      t.same(seen, before, what)
      return
    }
    await delay(EVERY_MS)
  }
}
