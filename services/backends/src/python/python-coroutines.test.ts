// needs: python
import { silentLogger } from '@tutti/chassis'
import { RecordedResponses } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import {
  bytesRequestInput,
  loadPythonModel,
  type PythonTestOptions,
  pythonConfig,
  pythonModel,
  WITHOUT_PYTHON,
} from '../testing/python-model.ts'
import { ScriptedHost } from '../testing/scripted-host.ts'

const HEAD = `import asyncio
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

def response(*values):
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array(values, np.uint8))])

def value(request):
    return int(pb_utils.get_input_tensor_by_name(request, "x").as_numpy()[0])

def call(model):
    return pb_utils.InferenceRequest(model_name=model, inputs=[pb_utils.Tensor("a", np.zeros(1, np.uint8))], requested_output_names=["b"])
`
const DECOUPLED = pythonConfig({ model_transaction_policy: { decoupled: true } })
const requestOf = (...values: readonly number[]) => stepRequest([bytesRequestInput(...values)])

function load(t: Test, methods: string, o: PythonTestOptions = {}) {
  return loadPythonModel(t, pythonModel(methods, HEAD), o)
}

async function answersOf(model: Awaited<ReturnType<typeof load>>, ...values: readonly number[]) {
  const responses = await executeOnce(
    model,
    values.map((value) => requestOf(value)),
  )
  return responses.map(({ error, outputs }) => error?.message ?? [...(outputs[0]?.data ?? [])])
}

await t.test(
  'tasks that a coroutine has started go on when execute has returned, and answer by senders',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    for (const returned of ['None', '[None for _ in requests]']) {
      const model = await load(
        t,
        `def initialize(self, args):
    self.tasks = []

async def execute(self, requests):
    for request in requests:
        self.tasks.append(asyncio.create_task(self.answer(request.get_response_sender(), value(request))))
    return ${returned}

async def answer(self, sender, n):
    await asyncio.sleep(0.01)
    sender.send(response(n + 1), FINAL)`,
      )
      t.same(await answersOf(model, 1, 2), [[2], [3]], returned)
    }
  },
)

await t.test(
  'requests wait for each other in a batch that tasks of an asynchronous model gather',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `def initialize(self, args):
    self.queue = None

async def execute(self, requests):
    if self.queue is None:
        self.queue = asyncio.Queue()
        self.task = asyncio.create_task(self.gather())
    for request in requests:
        await self.queue.put((request.get_response_sender(), value(request)))

async def gather(self):
    while True:
        batch = [await self.queue.get() for _ in range(2)]
        for sender, _ in batch:
            sender.send(response(sum(n for _, n in batch)), FINAL)`,
    )
    const both = await Promise.all([answersOf(model, 3), answersOf(model, 4)])
    t.same(both.flat(), [[7], [7]])
  },
)

await t.test(
  'None from execute is nothing to process: senders answer',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `def execute(self, requests):
    for request in requests:
        if value(request) > 0:
            request.get_response_sender().send(response(value(request)), FINAL)`,
    )
    const letGo = "model 'm_0' let go of a request without a final response"
    t.same(await answersOf(model, 1, 0, 2), [[1], letGo, [2]])
  },
)

await t.test(
  'what a coroutine raises is an error, whatever it is, and the loop runs on',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `async def execute(self, requests):
    n = value(requests[0])
    if n == 0:
        sys.exit(3)
    if n == 1:
        asyncio.create_task(self.end())
        await asyncio.sleep(0)
    if n == 2:
        raise asyncio.CancelledError("gone")
    return [response(n) for _ in requests]

async def end(self):
    sys.exit(4)`,
    )
    t.match(await answersOf(model, 0), [
      /message: SystemExit: 3\n\nAt:\n {2}\S+model.py\(\d+\): execute\n$/,
    ])
    t.same(await answersOf(model, 1), [[1]])
    t.match(await answersOf(model, 2), [/message: CancelledError: gone\n/])
    t.same(await answersOf(model, 5), [[5]])
  },
)

await t.test(
  'a call to a decoupled model resolves with its first response, and others run meanwhile',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const host = new ScriptedHost()
    const first = Promise.withResolvers<void>()
    let calls = 0
    host.models.set('stream', async function* () {
      calls += 1
      // The first one answers once the other, which began later, is there too.
      if (calls === 2) first.resolve()
      await first.promise
      yield { final: false }
      yield {}
    })
    host.models.set('none', async function* () {
      yield await Promise.resolve({})
    })
    const model = await load(
      t,
      `async def execute(self, requests):
    counts = await asyncio.gather(self.count("stream"), self.count("stream"), self.count("none"))
    return [response(*counts) for _ in requests]

async def count(self, model):
    return len([r for r in await call(model).async_exec(decoupled=True)])`,
      { load: { host } },
    )
    t.same(await answersOf(model, 1), [[2, 2, 1]])
  },
)

await t.test(
  'an exception after the final responses is in the log, for there is nobody to be answered with it',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    for (const way of ['def', 'async def']) {
      const lines: unknown[] = []
      const logged = Promise.withResolvers<void>()
      const error = (message: string, fields?: object): void => {
        lines.push({ message, ...fields })
        logged.resolve()
      }
      const model = await load(
        t,
        `${way} execute(self, requests):
    for request in requests:
        request.get_response_sender().send(response(1), FINAL)
    raise KeyError("too late")`,
        { config: DECOUPLED, log: { ...silentLogger, error } },
      )
      const sink = new RecordedResponses()
      const { signal } = new AbortController()
      await model.execute([{ request: requestOf(1), sink }], { instance: 0, signal })
      await logged.promise
      t.equal(sink.responses.length, 1)
      t.match(lines, [
        {
          message: 'model log',
          model: 'm',
          instance: 'm_0',
          text: /^Failed to process the request\(s\) for model 'm_0', message: KeyError: 'too late'\n\nAt:\n {2}\S+model.py/,
          at: /model.py:\d+$/,
        },
      ])
    }
  },
)

await t.test(
  'what the coroutine of a decoupled model returns counts for nothing, as in Triton',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `async def execute(self, requests):
    return await asyncio.gather(*[self.answer(request.get_response_sender()) for request in requests])

async def answer(self, sender):
    asyncio.get_running_loop().call_later(0.01, lambda: sender.send(response(1), FINAL))
    return 5`,
      { config: DECOUPLED },
    )
    t.same(await answersOf(model, 1), [[1]])
  },
)
