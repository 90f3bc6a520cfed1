// needs: python
import { silentLogger } from '@tutti/chassis'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import {
  bytesRequestInput,
  loadPythonModel,
  type PythonTestOptions,
  pythonModel,
  WITHOUT_PYTHON,
} from '../testing/python-model.ts'
import { type ScriptedCall, ScriptedHost } from '../testing/scripted-host.ts'

const HELPERS = `
def call(model, array, **more):
    return pb_utils.InferenceRequest(
        model_name=model, inputs=[pb_utils.Tensor("a", array)], requested_output_names=["b"], **more)

def told(what):
    text = what if isinstance(what, str) else repr(what)
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.frombuffer(text.encode(), np.uint8))])
`

/** Doubles every byte of its input. */
const double: ScriptedCall = async function* ({ inputs }) {
  const data = inputs[0]?.data.map((value) => (value * 2) % 256) ?? new Uint8Array(0)
  yield await Promise.resolve({
    outputs: [{ name: 'b', datatype: 'UINT8' as const, shape: [data.length], data }],
  })
}

/** @param called - the model `double`. It is there before the load, during which a thread of the model may call it. */
async function load(t: Test, methods: string, o: PythonTestOptions = {}, called = double) {
  const host = new ScriptedHost()
  host.models.set('double', called)
  const model = await loadPythonModel(t, pythonModel(methods, HELPERS), {
    ...o,
    load: { host, ...o.load },
  })
  return { host, model }
}

const requestOf = (...values: readonly number[]) => stepRequest([bytesRequestInput(...values)])

async function answerOf(model: LoadedModel, request = requestOf(1)): Promise<string> {
  const [response] = await executeOnce(model, [request])
  if (response?.error !== undefined) return `!${response.error.message}`
  return Buffer.from(response?.outputs[0]?.data ?? []).toString()
}

/** Lines that models printed. */
const lines: unknown[] = []

await t.test(
  'a thread of the model calls others while nothing executes, and for no request that happens to',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const first = Promise.withResolvers<void>()
    const { host, model } = await load(
      t,
      `def initialize(self, args):
    self.asked = threading.Semaphore(0)
    self.answers = []
    self.made = call("double", np.zeros(1, np.uint8))
    self.early = self.try_it()
    threading.Thread(target=self.run, daemon=True).start()

def try_it(self):
    try:
        return call("double", np.array([4], np.uint8)).exec().output_tensors()[0].as_numpy()[0]
    except pb_utils.TritonModelException as error:
        return str(error)

def run(self):
    while self.try_it() != 8:
        time.sleep(0.001)
    while True:
        self.asked.acquire()
        self.answers.append(self.try_it())

def execute(self, requests):
    order = int(pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()[0])
    if order == 1:
        while self.asked.release() is None and len(self.answers) < 3:
            time.sleep(0.001)
    if order == 2:
        made = call("double", np.zeros(1, np.uint8))
        threads = [threading.Thread(target=one.exec) for one in (made, self.made)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    return [told([self.early, set(map(int, self.answers))]) for _ in requests]

def finalize(self):
    print("late", self.try_it(), flush=True)`,
      {
        settings: { backgroundMs: 700 },
        log: { ...silentLogger, info: (_, fields) => void lines.push(fields) },
      },
      (...call) => {
        first.resolve()
        return double(...call)
      },
    )
    // Nothing executes.
    await first.promise
    const early = "BLS is only supported during the 'execute' function."
    t.equal(await answerOf(model), `["${early}", {8}]`)
    const background = { model: 'm', timeoutMs: 700 }
    for (const { options } of host.calls) {
      t.equal(options.caller, undefined)
      t.same(options.background, background)
    }
    host.calls.length = 0
    const request = requestOf(2)
    await answerOf(model, request)
    const own = host.calls.filter(({ options }) => options.caller === request)
    t.equal(own.length, 1, 'what was made for a request is for it in any thread')
    t.ok(host.calls.some(({ options }) => options.background !== undefined))
    await model.close()
    t.match(lines.at(-1), { line: `late ${early}` })
  },
)

await t.test(
  'calls that belong to no request are bounded in number, and end with the process',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const { host, model } = await load(
      t,
      `def initialize(self, args):
    self.answers = []

def one(self, gate):
    gate.wait()
    response = call("slow", np.zeros(1, np.uint8)).exec()
    self.answers.append(response.error().message())

def execute(self, requests):
    gate = threading.Event()
    for _ in range(3):
        threading.Thread(target=self.one, args=(gate,), daemon=True).start()
    gate.set()
    while not self.answers:
        time.sleep(0.001)
    return [told(self.answers) for _ in requests]`,
      { settings: { backgroundCalls: 2 } },
    )
    let ended = 0
    const both = Promise.withResolvers<void>()
    host.models.set('slow', async function* (_, { signal }) {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      ended += 1
      if (ended === 2) both.resolve()
      yield {}
    })
    t.match(
      await answerOf(model),
      /^\['Model slow - Error when running inference: got a further call that belongs to no request, want at most 2 open ones /,
    )
    await model.close()
    await both.promise
  },
)
