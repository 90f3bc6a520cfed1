// needs: python
import { setTimeout as delay } from 'node:timers/promises'
import type { ServeError } from '@tutti/errors'
import type { StepRequest, StepResponse } from '@tutti/tensor'
import t from 'tap'
import type { LoadedModel } from '../engine.ts'
import { stepRequest } from '../testing/model-source.ts'
import { held, instancePids, settles, WITHOUT_CHURN } from '../testing/python-churn.ts'
import { loadPythonModel, pythonModel } from '../testing/python-model.ts'

t.setTimeout(0)

const SECONDS = 60
const CLIENTS = 12
const INSTANCES = 3
const SIZE = 400_000
const LONGEST_PAUSE_MS = 60

/** Adds 1, sometimes in place, and sometimes keeps its input for a while. */
const MODEL = pythonModel(
  `kept = []

def execute(self, requests):
    responses = []
    for request in requests:
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        if random.random() < 0.3:
            self.kept.append(x)
        if len(self.kept) > 5:
            self.kept.clear()
        y = np.add(x, 1, out=x) if random.random() < 0.03 else x + 1
        responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", y)]))
    return responses`,
  'import random',
)

type Answer = Required<Pick<StepResponse, 'outputs' | 'retain'>> & { readonly giveBack: () => void }

/** Executes a request; undefined if the process of its instance was killed. */
async function answer(model: LoadedModel, request: StepRequest): Promise<Answer | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer | undefined>()
  const sink = {
    send: ({ outputs, retain = () => () => {} }: StepResponse) =>
      resolve({ outputs, retain, giveBack: retain() }),
    fail: (error: ServeError) =>
      error.reason === 'ENGINE_STOPPED' ? resolve(undefined) : reject(error),
  }
  await model.execute([{ request, sink }], { instance: 0, signal: new AbortController().signal })
  return promise
}

const isFilled = ({ outputs }: Answer, value: number): boolean =>
  outputs[0]?.data.every((byte) => byte === value) === true

await t.test(
  'tensors that are passed on are right, and come back, when processes are killed at random',
  { skip: WITHOUT_CHURN },
  async (t) => {
    const settings = { restartFirstMs: 0, restartLongestMs: 0, restartResetMs: 0 }
    const load = () => loadPythonModel(t, MODEL, { settings })
    const models = await Promise.all(Array.from({ length: INSTANCES }, load))
    const pick = (): LoadedModel => {
      const model = models[Math.trunc(Math.random() * INSTANCES)]
      if (model === undefined) throw new Error('no model')
      return model
    }
    const until = performance.now() + SECONDS * 1000
    const counts = { answered: 0, lost: 0, wrong: 0, killed: 0 }
    /** A chain of steps over random instances. What each answered is read again when the next has answered. */
    const client = async (): Promise<void> => {
      while (performance.now() < until) {
        const value = Math.trunc(Math.random() * 200)
        const x = { name: 'x', datatype: 'UINT8' as const, shape: [SIZE] }
        let request = stepRequest([{ ...x, data: new Uint8Array(SIZE).fill(value) }])
        let last: Answer | undefined
        for (let step = 1; step <= 4; step += 1) {
          const next = await answer(pick(), request)
          if (last !== undefined && !isFilled(last, value + step - 1)) counts.wrong += 1
          last?.giveBack()
          last = next
          counts[next === undefined ? 'lost' : 'answered'] += 1
          if (next === undefined) break
          const { outputs, retain } = next
          request = { ...stepRequest(outputs.map(({ data }) => ({ ...x, data }))), retain }
        }
        last?.giveBack()
      }
    }
    const killer = async (): Promise<void> => {
      while (performance.now() < until) {
        await delay(Math.random() * LONGEST_PAUSE_MS)
        const pids = await instancePids()
        const pid = pids[Math.trunc(Math.random() * pids.length)]
        if (pid === undefined) continue
        try {
          process.kill(pid, 'SIGKILL')
          counts.killed += 1
        } catch {
          // It has ended meanwhile.
        }
      }
    }
    const before = await held()
    await Promise.all([killer(), ...Array.from({ length: CLIENTS }, client)])
    t.comment(JSON.stringify(counts))
    t.ok(counts.answered > 100 && counts.lost > 10 && counts.killed > 100)
    t.equal(counts.wrong, 0)
    // Each serves again, so that each has a process.
    for (const model of models) {
      const x = { name: 'x', datatype: 'UINT8' as const, shape: [1], data: Uint8Array.of(1) }
      ;(await answer(model, stepRequest([x])))?.giveBack()
    }
    await settles(t, before, 'every arena of a killed process is gone')
  },
)
