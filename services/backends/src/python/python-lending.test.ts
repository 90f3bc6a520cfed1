// needs: python
import type { NamedTensor, StepResponse } from '@tutti/tensor'
import { Lender } from '@tutti/tensor/testing'
import t from 'tap'
import type { LoadedModel } from '../engine.ts'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import { held, settles, WITHOUT_CHURN } from '../testing/python-churn.ts'
import {
  answerWith,
  bytesRequestInput,
  loadPythonModel,
  pythonConfig,
  pythonModel,
} from '../testing/python-model.ts'

const SIZE = 100_000
const skip = WITHOUT_CHURN

function large(value: number): NamedTensor {
  const data = new Uint8Array(SIZE).fill(value)
  return { name: 'x', datatype: 'UINT8', shape: [SIZE], data }
}

/** Its response as it came, and how it is given back. */
interface Kept {
  readonly data: Uint8Array
  readonly giveBack: () => void
}

/** Executes requests together, and retains their responses. */
async function keep(model: LoadedModel, ...inputs: readonly NamedTensor[]): Promise<Kept[]> {
  const kept: Kept[] = []
  const batch = inputs.map((input) => ({
    request: stepRequest([input]),
    sink: {
      send: ({ outputs, retain }: StepResponse) => {
        const [output] = outputs
        if (output !== undefined) {
          kept.push({ data: output.data, giveBack: retain?.() ?? (() => {}) })
        }
      },
      fail: (error: Error) => t.fail(error.message),
    },
  }))
  await model.execute(batch, { instance: 0, signal: new AbortController().signal })
  return kept
}

/** Executes one request, and retains its response. */
async function keepOne(model: LoadedModel, input: NamedTensor): Promise<Kept> {
  const [kept] = await keep(model, input)
  if (kept === undefined) throw new Error('no response')
  return kept
}

const isFilledWith = ({ data }: Kept, value: number): boolean =>
  data.byteLength === SIZE && data.every((byte) => byte === value)

const executeSome = async (model: LoadedModel): Promise<void> => {
  for (let i = 10; i < 20; i += 1) await executeOnce(model, [stepRequest([large(i)])])
}

const ways = {
  'a new array': answerWith('x + 1'),
  'its input': answerWith('np.add(x, 1, out=x)'),
}

for (const [name, code] of Object.entries(ways)) {
  await t.test(`${name} is lent until all who retained it gave it back`, { skip }, async (t) => {
    const model = await loadPythonModel(t, pythonModel(code))
    // The memory that the next results take is learnt from the last.
    await executeSome(model)
    const free = await keepOne(model, large(0))
    free.giveBack()
    const one = await keepOne(model, large(1))
    t.equal(one.data.buffer, free.data.buffer, 'both are views of one memory')
    t.equal(one.data.byteOffset, free.data.byteOffset, 'memory is used again')
    const others = await keep(model, large(2), large(3))
    await executeSome(model)
    t.same(
      [one, ...others].map((kept, i) => isFilledWith(kept, 2 + i)),
      [true, true, true],
    )
    const last = others.pop()
    for (const { giveBack } of [one, one, ...others]) giveBack()
    await executeSome(model)
    t.ok(last && isFilledWith(last, 4), 'the other response of the execution')
    last?.giveBack()
    const next = await keepOne(model, large(5))
    t.equal(next.data.byteOffset, free.data.byteOffset, 'all came back')
    next.giveBack()
  })
}

await t.test('inputs are retained while they are copied', { skip }, async (t) => {
  const model = await loadPythonModel(t, pythonModel(answerWith('x[-1:]')))
  const size = 32 * 1024 * 1024
  const lender = new Lender()
  const data = new Uint8Array(size).fill(7)
  const lent = lender.lend([{ name: 'x', datatype: 'UINT8', shape: [size], data }])
  const request = { ...stepRequest(lent.tensors), retain: lent.retain }
  const executed = executeOnce(model, [request])
  lent.end()
  t.equal(lender.open, 1)
  const [response] = await executed
  t.same(response?.outputs[0]?.data, Buffer.of(7))
  t.equal(lender.open, 0)
})

await t.test('streamed responses, and one that waits for its final flag', { skip }, async (t) => {
  const sends = `def execute(self, requests):
    x = pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()
    sender = requests[0].get_response_sender()
    for i in range(self.count):
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", x + i)]))
    sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)`
  const decoupled = await loadPythonModel(t, pythonModel(`count = 4\n${sends}`), {
    config: pythonConfig({ model_transaction_policy: { decoupled: true } }),
  })
  const many = await keep(decoupled, large(1))
  t.same(
    many.map((kept, i) => isFilledWith(kept, 1 + i)),
    [true, true, true, true],
  )
  for (const { giveBack } of many) giveBack()
  const single = await loadPythonModel(t, pythonModel(`count = 1\n${sends}`))
  const one = await keepOne(single, large(7))
  const two = await keepOne(single, large(8))
  t.ok(isFilledWith(one, 7) && isFilledWith(two, 8))
  one.giveBack()
  two.giveBack()
})

await t.test(
  'what was lent outlives its process, and its mapping ends with it',
  { skip },
  async (t) => {
    const code = pythonModel(`def execute(self, requests):
    x = pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()
    if len(x) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return self.answer(requests)

${answerWith('x + 1').replace('def execute', 'def answer')}`)
    const settings = { restartFirstMs: 0, restartLongestMs: 0 }
    const model = await loadPythonModel(t, code, { settings })
    await executeOnce(model, [stepRequest([large(0)])])
    const before = await held()
    t.equal(before.arenas, 1)
    const one = await keepOne(model, large(1))
    const two = await keepOne(model, large(2))
    const [killed] = await executeOnce(model, [stepRequest([bytesRequestInput(0)])])
    t.match(killed?.error, { reason: 'ENGINE_STOPPED' })
    await executeOnce(model, [stepRequest([large(0)])])
    await settles(t, { ...before, arenas: 2 }, 'the arena of the one that was killed stays')
    one.giveBack()
    t.ok(isFilledWith(two, 3))
    two.giveBack()
    await settles(t, before, 'until all is given back')
    t.equal(two.data.byteLength, 0, 'a reader that came too late finds nothing')
  },
)

await t.test('a reader that keeps everything does not stop the instance', { skip }, async (t) => {
  const settings = { arenaBytes: 10 * SIZE }
  const model = await loadPythonModel(t, pythonModel(answerWith('x + 1')), { settings })
  const kept: Kept[] = []
  for (let i = 0; i < 30; i += 1) kept.push(await keepOne(model, large(i)))
  t.ok(kept.every((one, i) => isFilledWith(one, i + 1)))
  for (const { giveBack } of kept) giveBack()
  const last = await keepOne(model, large(1))
  t.ok(isFilledWith(last, 2))
  last.giveBack()
})
