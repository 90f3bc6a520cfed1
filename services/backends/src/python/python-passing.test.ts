// needs: python
import type { NamedTensor, StepRequest, StepResponse } from '@tutti/tensor'
import { type RecordedResponse, RecordedResponses } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import { countingMemory } from '../testing/counting-memory.ts'
import { stepRequest } from '../testing/model-source.ts'
import { held, settles, WITHOUT_CHURN } from '../testing/python-churn.ts'
import {
  answerWith,
  loadPythonModel,
  type PythonTestOptions,
  pythonModel,
} from '../testing/python-model.ts'
import { ScriptedHost } from '../testing/scripted-host.ts'

const SIZE = 100_000
const skip = WITHOUT_CHURN
const AT_ONCE = { restartFirstMs: 0, restartLongestMs: 0 }

/** Adds 1 to its input, in place if the first number says so; keeps its input, or ends its process, by the second. */
const CONSUMER = pythonModel(`kept = []

def execute(self, requests):
    responses = []
    for request in requests:
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        if x[1] == 66:
            os.kill(os.getpid(), signal.SIGKILL)
        if x[1] == 77:
            self.kept.append(x)
        if x[1] == 88:
            self.kept.clear()
        y = np.add(x, 1, out=x) if x[0] == 55 else x + 1
        responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", y.copy())]))
    return responses`)
const [IN_PLACE, KILL, KEEP, DROP] = [55, 66, 77, 88]

function large(value: number, ...first: readonly number[]): StepRequest {
  const data = new Uint8Array(SIZE).fill(value)
  data.set(first)
  return stepRequest([{ name: 'x', datatype: 'UINT8', shape: [SIZE], data }])
}

/** The output as a request for the next model, lent as it came. */
interface Passed {
  readonly request: StepRequest
  readonly data: Uint8Array
  readonly giveBack: () => void
}

async function produce(model: LoadedModel, request: StepRequest): Promise<Passed> {
  const { promise, resolve, reject } = Promise.withResolvers<Passed>()
  const send = ({ outputs, retain }: StepResponse): void => {
    const [y] = outputs
    if (y === undefined || retain === undefined) return reject(new Error('nothing was lent'))
    const inputs: NamedTensor[] = [{ ...y, name: 'x' }]
    resolve({ request: { ...stepRequest(inputs), retain }, data: y.data, giveBack: retain() })
  }
  await execute(model, [{ request, sink: { send, fail: reject } }])
  return promise
}

function execute(model: LoadedModel, batch: Parameters<LoadedModel['execute']>[0]) {
  return model.execute(batch, { instance: 0, signal: new AbortController().signal })
}

async function consume(
  model: LoadedModel,
  ...requests: readonly StepRequest[]
): Promise<readonly (RecordedResponse | undefined)[]> {
  const sinks = requests.map(() => new RecordedResponses())
  await execute(
    model,
    sinks.flatMap((sink, i) => {
      const request = requests[i]
      return request === undefined ? [] : [{ request, sink }]
    }),
  )
  return sinks.map(({ responses }) => responses[0])
}

/** The last of the numbers, which are all alike but the first two. */
const lastOf = (response: RecordedResponse | undefined): number | undefined =>
  response?.outputs[0]?.data.at(-1)

/** A model that passes its input on, and one that reads it where it lies: asked until it sees it. */
async function chain(t: Test, o: PythonTestOptions = {}) {
  const counted = countingMemory()
  const settings = AT_ONCE
  const all = { settings, memory: counted.memory, ...o }
  const producer = await loadPythonModel(t, pythonModel(answerWith('x.copy()')), all)
  const consumer = await loadPythonModel(t, CONSUMER, all)
  const pass = async (request: StepRequest): Promise<number | undefined> => {
    const passed = await produce(producer, request)
    const [response] = await consume(consumer, passed.request)
    passed.giveBack()
    return lastOf(response)
  }
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 3; i += 1) await pass(large(0))
  }
  await settle()
  counted.reset()
  return { producer, consumer, pass, settle, ...counted }
}

await t.test('a tensor is copied in once, and passed on without a copy', { skip }, async (t) => {
  const { pass, copied } = await chain(t)
  t.equal(await pass(large(1)), 2)
  t.same(copied, { in: SIZE, out: 0 }, 'what the consumer answers is lent too')
})

await t.test(
  'what a model writes into an input is seen by no other process',
  { skip },
  async (t) => {
    const { producer, consumer, pass, copied, reset } = await chain(t)
    const passed = await produce(producer, large(1, IN_PLACE))
    reset()
    const both = await consume(consumer, passed.request, passed.request)
    t.same(both.map(lastOf), [2, 2], 'neither by another request of the same execution')
    t.same(copied, { in: SIZE, out: 0 }, 'which gets a copy')
    t.equal(passed.data.at(-1), 1, 'nor by another reader of the output')
    t.same((await consume(consumer, passed.request)).map(lastOf), [2], 'nor by another step')
    t.equal(copied.in, 2 * SIZE, 'from now on the model gets copies, which are cheaper than pages')
    passed.giveBack()
    for (let i = 1; i < 5; i += 1) t.equal(await pass(large(i, IN_PLACE)), i + 1)
  },
)

await t.test('an input that the model keeps is not written over', { skip }, async (t) => {
  const { producer, pass } = await chain(t)
  const first = await produce(producer, large(0))
  first.giveBack()
  t.equal(await pass(large(1, 0, KEEP)), 2)
  const second = await produce(producer, large(2))
  t.not(second.data.byteOffset, first.data.byteOffset, 'its memory is in use')
  second.giveBack()
  t.equal(await pass(large(3, 0, DROP)), 4)
  await pass(large(0))
  const third = await produce(producer, large(4))
  t.equal(third.data.byteOffset, first.data.byteOffset, 'its memory came back')
  third.giveBack()
})

await t.test(
  'a process that is killed keeps nothing that others lent to it',
  { skip },
  async (t) => {
    const { producer, consumer, pass, settle } = await chain(t)
    const before = await held()
    const first = await produce(producer, large(0))
    first.giveBack()
    t.equal(await pass(large(1, 0, KEEP)), 2)
    const passed = await produce(producer, large(1, 0, KILL))
    const [killed] = await consume(consumer, passed.request)
    t.match(killed?.error, { reason: 'ENGINE_STOPPED' })
    t.equal(passed.data.at(-1), 1, 'it is read by others')
    passed.giveBack()
    await settle()
    const next = await produce(producer, large(2))
    t.equal(next.data.byteOffset, first.data.byteOffset, 'all came back')
    next.giveBack()
    await settles(t, before, 'the arena of the consumer that was killed is gone')
  },
)

await t.test('a model calls another one without a copy of what it sends', { skip }, async (t) => {
  const { memory, copied, reset } = countingMemory()
  const consumer = await loadPythonModel(t, CONSUMER, { settings: AT_ONCE, memory })
  const host = new ScriptedHost()
  const offsets: number[] = []
  host.models.set('consumer', async function* call({ inputs, retain }) {
    offsets.push(inputs[0]?.data.byteOffset ?? -1)
    const lent = retain && { retain }
    const [response] = await consume(consumer, { ...stepRequest(inputs), ...lent })
    if (response?.error !== undefined) throw response.error
    yield { outputs: response?.outputs ?? [] }
  })
  const methods = `def execute(self, requests):
    responses = []
    for request in requests:
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        sent = pb_utils.Tensor("x", np.full(${SIZE}, x[0], np.uint8))
        answer = pb_utils.InferenceRequest(model_name="consumer", inputs=[sent], requested_output_names=["y"]).exec()
        if answer.has_error():
            raise pb_utils.TritonModelException(answer.error().message())
        y = pb_utils.get_output_tensor_by_name(answer, "y").as_numpy()
        responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", y[-1:].copy())]))
    return responses`
  const o = { settings: AT_ONCE, memory, load: { host } }
  const caller = await loadPythonModel(t, pythonModel(methods), o)
  const ask = async (value: number): Promise<RecordedResponse | undefined> => {
    const data = Uint8Array.of(value)
    const x = { name: 'x', datatype: 'UINT8', shape: [1], data } as const
    return (await consume(caller, stepRequest([x])))[0]
  }
  for (let i = 0; i < 3; i += 1) await ask(i)
  reset()
  t.equal(lastOf(await ask(7)), 8)
  t.same(copied, { in: SIZE, out: 0 }, 'only the answer goes into the memory of the caller')
  t.match((await ask(KILL))?.error, { message: /is not healthy/ })
  for (let i = 0; i < 20; i += 1) t.equal(lastOf(await ask(i)), i + 1)
  t.ok(Math.max(...offsets) <= 4 * SIZE, `the memory of each call comes back: ${offsets.join(' ')}`)
})

await t.test('what a killed process lent stays until it is given back', { skip }, async (t) => {
  const { memory } = countingMemory()
  const producer = await loadPythonModel(t, CONSUMER, { settings: AT_ONCE, memory })
  const maps = `def execute(self, requests):
    with open("/proc/self/maps") as lines:
        count = sum("tutti-arena" in line for line in lines)
    x = pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()
    return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([count, x[-1]], np.uint8))])]`
  const consumer = await loadPythonModel(t, pythonModel(maps), { settings: AT_ONCE, memory })
  const mapped = async (request: StepRequest): Promise<readonly number[]> => {
    const [response] = await consume(consumer, request)
    return [...(response?.outputs[0]?.data ?? [])]
  }
  for (let i = 0; i < 2; i += 1) (await produce(producer, large(i))).giveBack()
  const before = await held()
  const passed = await produce(producer, large(4))
  await mapped(passed.request)
  const [killed] = await consume(producer, large(0, 0, KILL))
  t.match(killed?.error, { reason: 'ENGINE_STOPPED' })
  t.same(await mapped(passed.request), [2, 5], 'the consumer sees its arena and the lost one')
  await settles(
    t,
    { ...before, arenas: before.arenas + 1 },
    'it stays, beside that of the next process',
  )
  passed.giveBack()
  const small = stepRequest([{ name: 'x', datatype: 'UINT8', shape: [1], data: Uint8Array.of(7) }])
  while ((await mapped(small))[0] !== 1) await new Promise(setImmediate)
  await consume(producer, large(0))
  await settles(t, before, 'the lost arena is gone')
})
