// needs: python
import type { ResponseSink } from '@tutti/tensor'
import { type RecordedResponse, RecordedResponses } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
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

const FINAL = 'pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL'
const HELPERS = `
FINAL = ${FINAL}

def value(request):
    return int(pb_utils.get_input_tensor_by_name(request, "x").as_numpy()[0])

def response(*values):
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array(values, np.uint8))])
`
const DECOUPLED = pythonConfig({ model_transaction_policy: { decoupled: true } })

function load(t: Test, methods: string, o: PythonTestOptions = {}): Promise<LoadedModel> {
  return loadPythonModel(t, pythonModel(methods, HELPERS), o)
}

const requestOf = (...values: readonly number[]) => stepRequest([bytesRequestInput(...values)])

/** A response in short: its values, `!` for an error, `.` after the final one. */
function short({ outputs, error, final }: RecordedResponse): string {
  const what = error === undefined ? [...(outputs[0]?.data ?? [])].join(',') : `!${error.message}`
  return final ? `${what}.` : what
}

/** Starts an execution and keeps what comes, by request. */
function begin(
  model: LoadedModel,
  requests: readonly ReturnType<typeof requestOf>[],
  ready?: (request: number) => Promise<void> | undefined,
) {
  const abort = new AbortController()
  const released = Promise.withResolvers<void>()
  const first = Promise.withResolvers<void>()
  let abandon: ((request: number) => void) | undefined
  const batch = requests.map((request, i) => {
    const recorded = new RecordedResponses()
    const sink: ResponseSink = {
      send: (response) => {
        recorded.send(response)
        first.resolve()
      },
      fail: (error) => {
        recorded.fail(error)
        first.resolve()
      },
      ...(ready !== undefined && { ready: () => ready(i) }),
    }
    return { request, sink, responses: recorded.responses }
  })
  const responses = batch.map((one) => one.responses)
  const done = model.execute(batch, {
    instance: 0,
    signal: abort.signal,
    release: () => released.resolve(),
    onAbandon: (listener) => {
      abandon = listener
    },
  })
  return {
    responses,
    done,
    abort,
    released: released.promise,
    first: first.promise,
    abandon: (request: number) => abandon?.(request),
    shorts: () => responses.map((list) => list.map(short)),
  }
}

await t.test(
  'a decoupled model sends any number of responses, the last with the final flag or without content',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    for (const sharesMemory of [true, false]) {
      const model = await load(
        t,
        `def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        n = value(request)
        for i in range(n):
            sender.send(response(i), FINAL if n == 2 and i == 1 else 0)
        if n != 2:
            sender.send(flags=FINAL)`,
        { config: DECOUPLED, sharesMemory },
      )
      const { done, shorts, responses } = begin(
        model,
        [0, 1, 2, 20].map((n) => requestOf(n)),
      )
      await done
      t.same(shorts(), [
        ['.'],
        ['0', '.'],
        ['0', '1.'],
        [...Array.from({ length: 20 }, (_, i) => `${i}`), '.'],
      ])
      t.same(
        responses[3]?.map(({ index }) => index),
        Array.from({ length: 21 }, (_, i) => i),
      )
      for (const list of responses) {
        const { computeInputNs = 0, computeOutputNs = 0 } = list.at(-1)?.times ?? {}
        t.ok(computeInputNs > 0 && computeOutputNs > 0, `${computeInputNs}, ${computeOutputNs} ns`)
      }
    }
  },
)

await t.test(
  'a decoupled model goes on in threads while it takes further requests',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `def initialize(self, args):
    self.gate = threading.Event()

def execute(self, requests):
    for request in requests:
        if value(request) == 255:
            self.gate.set()
            request.get_response_sender().send(response(255), FINAL)
        else:
            threading.Thread(target=self.stream, args=(request,)).start()

def stream(self, request):
    sender = request.get_response_sender()
    sender.send(response(1))
    self.gate.wait()
    kept = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", kept[-3:])]), FINAL)`,
      { config: DECOUPLED },
    )
    const large = [...Array.from({ length: 20_000 }, () => 7), 1, 2, 3]
    const first = begin(model, [requestOf(...large)])
    await first.released
    await first.first
    t.same(first.shorts(), [['1']])
    const second = begin(model, [requestOf(255)])
    await second.done
    await first.done
    t.same(second.shorts(), [['255.']])
    t.same(first.shorts(), [['1', '1,2,3.']], 'inputs stay as they were while the request is open')
  },
)

await t.test(
  'what breaks the rules of a decoupled model ends its requests',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `def execute(self, requests):
    what = value(requests[0])
    sender = requests[0].get_response_sender()
    if what == 0:
        return []
    if what == 1:
        sender.send(response(1))
        raise ValueError("after one")
    if what == 2:
        sender.send(response(1))
    if what == 3:
        sender.send(response(1), FINAL)
        sender.send(response(2), FINAL)
    if what == 4:
        sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("bad", pb_utils.TritonError.NOT_FOUND)))`,
      { config: DECOUPLED },
    )
    const prefix = "!Failed to process the request(s) for model 'm_0', message: "
    const run = async (what: number) => {
      const { done, shorts } = begin(model, [requestOf(what)])
      await done
      return shorts()[0] ?? []
    }
    t.same(await run(0), [
      `${prefix}Python model 'm_0' is using the decoupled mode and the execute function must return None..`,
    ])
    t.match(await run(1), ['1', /^!Failed to process .*message: ValueError: after one\n\nAt:/])
    t.match(await run(2), ['1', /^!model 'm_0' let go of a request without a final response.$/])
    t.same(await run(3), ['1.'], 'the final flag was sent; the exception comes too late')
    t.same(await run(4), ['!bad.'])
  },
)

await t.test(
  'a model that is not decoupled may answer through a sender, once',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `def execute(self, requests):
    out = []
    for request in requests:
        if value(request) == 0:
            out.append(response(0))
            continue
        threading.Thread(target=self.answer, args=(request.get_response_sender(), value(request))).start()
        out.append(None)
    return out

def answer(self, sender, n):
    time.sleep(0.01)
    if n == 1:
        sender.send(response(n), FINAL)
    if n == 2:
        sender.send(response(n))
        sender.send(flags=FINAL)`,
    )
    const responses = await executeOnce(
      model,
      [0, 1, 2, 3].map((n) => requestOf(n)),
    )
    t.same(responses.map(short), [
      '0.',
      '1.',
      '2.',
      "!model 'm_0' let go of a request without a final response.",
    ])
  },
)

await t.test(
  'execute may be a coroutine; those of a decoupled model run side by side',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const head = `${HELPERS}\nimport asyncio\n`
    const plain = await loadPythonModel(
      t,
      pythonModel(
        `async def execute(self, requests):
    await asyncio.sleep(0)
    if value(requests[0]) == 9:
        raise KeyError("nine")
    return list(await asyncio.gather(*[self.one(r) for r in requests]))

async def one(self, request):
    await asyncio.sleep(0.001)
    return response(value(request) + 1)`,
        head,
      ),
    )
    t.same((await executeOnce(plain, [requestOf(1), requestOf(2)])).map(short), ['2.', '3.'])
    t.match((await executeOnce(plain, [requestOf(9)])).map(short), [
      /message: KeyError: 'nine'\n\nAt:\n {2}\S+model.py\(\d+\): execute\n/,
    ])
    const streaming = await loadPythonModel(
      t,
      pythonModel(
        `def initialize(self, args):
    self.gate = None

async def execute(self, requests):
    if self.gate is None:
        self.gate = asyncio.Event()
    for request in requests:
        sender = request.get_response_sender()
        if value(request) == 0:
            await self.gate.wait()
        elif value(request) == 9:
            raise KeyError("nine")
        else:
            self.gate.set()
        sender.send(response(value(request)), FINAL)`,
        head,
      ),
      { config: DECOUPLED },
    )
    const first = begin(streaming, [requestOf(0)])
    await first.released
    const failing = begin(streaming, [requestOf(9)])
    await failing.done
    t.match(failing.shorts(), [[/KeyError: 'nine'/]])
    const second = begin(streaming, [requestOf(1)])
    await Promise.all([first.done, second.done])
    t.same([first.shorts(), second.shorts()], [[['0.']], [['1.']]])
  },
)

await t.test(
  'what a model sends after the error that ended a request is dropped, and does not hold it up',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `def initialize(self, args):
    self.thread = None

def execute(self, requests):
    if self.thread is not None:
        self.thread.join()
        requests[0].get_response_sender().send(response(self.sent), FINAL)
        return
    sender = requests[0].get_response_sender()
    def stream():
        sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("no")))
        for self.sent in range(1, 41):
            sender.send(response(self.sent))
        sender.send(None, FINAL)
    self.thread = threading.Thread(target=stream)
    self.thread.start()`,
      { config: DECOUPLED },
    )
    const failing = begin(model, [requestOf(1)])
    await failing.done
    t.same(failing.shorts(), [['!no.']])
    const next = begin(model, [requestOf(1)])
    await next.done
    t.same(next.shorts(), [['40.']])
  },
)

await t.test(
  'a request that an error has ended says that it is cancelled',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `def execute(self, requests):
    sender = requests[0].get_response_sender()
    sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError("no")))
    while not sender.is_cancelled():
        time.sleep(0.01)
    sender.send(None, FINAL)`,
      { config: DECOUPLED },
    )
    const failing = begin(model, [requestOf(1)])
    await failing.done
    t.same(failing.shorts(), [['!no.']])
  },
)

await t.test(
  'a request whose caller has left says so, the others of its batch do not',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `def execute(self, requests):
    first = requests[0].get_response_sender()
    first.send(response(1))
    while not requests[0].is_cancelled():
        time.sleep(0.001)
    seen = [request.is_cancelled() for request in requests]
    for request in requests:
        request.get_response_sender().send(response(*seen), FINAL)`,
      { config: DECOUPLED },
    )
    const batch = begin(model, [requestOf(1), requestOf(2)])
    await batch.first
    batch.abandon(0)
    await batch.done
    t.same(batch.shorts(), [['1', '1,0.'], ['1,0.']])
    const alone = begin(model, [requestOf(1)])
    await alone.first
    alone.abort.abort()
    await alone.done
    t.same(alone.shorts(), [['1', '1.']])
  },
)

await t.test(
  'a slow reader holds the model back, and nothing is lost',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await load(
      t,
      `def execute(self, requests):
    threading.Thread(target=self.stream, args=(requests[0].get_response_sender(),)).start()

def stream(self, sender):
    for i in range(100):
        sender.send(response(i))
        print("sent", i, flush=True)
    sender.send(flags=FINAL)`,
      { config: DECOUPLED },
    )
    let isOpen = false
    const gate = Promise.withResolvers<void>()
    const waiting = Promise.withResolvers<void>()
    const ready = (): Promise<void> | undefined => {
      if (isOpen) return undefined
      waiting.resolve()
      return gate.promise
    }
    const slow = begin(model, [requestOf(1)], ready)
    await waiting.promise
    // Another request goes its way meanwhile, so everything that the first may send has come.
    const other = begin(model, [requestOf(1)])
    await other.done
    t.ok(
      (slow.responses[0]?.length ?? 0) <= 8,
      `${slow.responses[0]?.length} responses before the reader was ready`,
    )
    isOpen = true
    gate.resolve()
    await slow.done
    t.same(slow.shorts(), [[...Array.from({ length: 100 }, (_, i) => `${i}`), '.']])
  },
)
