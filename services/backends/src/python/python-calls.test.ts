// needs: python
import { silentLogger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { NamedTensor } from '@tutti/tensor'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import { CustomMetrics } from '../model-metrics.ts'
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

const HELPERS = `import asyncio

def call(model, array, **more):
    return pb_utils.InferenceRequest(
        model_name=model, inputs=[pb_utils.Tensor("a", array)], requested_output_names=["b"], **more)

def told(what):
    text = what if isinstance(what, str) else repr(what)
    return pb_utils.InferenceResponse([pb_utils.Tensor("y", np.frombuffer(text.encode(), np.uint8))])
`

/** Doubles every byte of its input. */
async function* double({ inputs }: { readonly inputs: readonly NamedTensor[] }) {
  const data = inputs[0]?.data.map((value) => (value * 2) % 256) ?? new Uint8Array(0)
  yield await Promise.resolve({
    outputs: [{ name: 'b', datatype: 'UINT8' as const, shape: [data.length], data }],
  })
}

async function load(t: Test, methods: string, o: PythonTestOptions = {}) {
  const host = new ScriptedHost()
  host.models.set('double', double)
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

/** Text that stands before what the server refuses a model. */
const REFUSED = "Failed to process the request for model 'm_0', message: "

await t.test(
  'a model calls another one while it executes, with tensors of any size',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    for (const sharesMemory of [true, false]) {
      const { host, model } = await load(
        t,
        `def execute(self, requests):
    out = []
    for request in requests:
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        first = call("double", x, request_id="r", correlation_id=2**63, flags=3, timeout=5,
                     parameters={"p": 2**60, "q": 1.5}).exec()
        second = call("double", first.output_tensors()[0].as_numpy(), trace=request.trace()).exec()
        out.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", second.output_tensors()[0].as_numpy())]))
    return out`,
        { sharesMemory },
      )
      for (const size of [1, 100, 9000, 500_000]) {
        const data = Uint8Array.from({ length: size }, (_, i) => i % 50)
        const request = stepRequest([{ name: 'x', datatype: 'UINT8', shape: [size], data }])
        const [response] = await executeOnce(model, [request])
        t.ok(
          response?.outputs[0]?.data.every((value, i) => value === (i % 50) * 4),
          `${size} bytes`,
        )
        t.equal(host.calls.at(-1)?.options.caller, request, 'the call is made for its request')
        t.equal(host.calls.at(-1)?.options.traced, request, 'it got its trace')
        t.equal(host.calls.at(-2)?.options.traced, undefined)
      }
      const { request, options } = host.calls[0] ?? {}
      t.same(options?.isDecoupled, false)
      t.match(request, {
        modelName: 'double',
        modelVersion: '-1',
        requestId: 'r',
        correlationId: 2n ** 63n,
        flags: 3,
        timeoutUs: 5n,
        priority: 0n,
        parameters: new Map<string, unknown>([
          ['p', { kind: 'int64', value: 2n ** 60n }],
          ['q', { kind: 'double', value: 1.5 }],
        ]),
        requestedOutputs: ['b'],
      })
    }
  },
)

await t.test(
  'calls run side by side, from threads and from coroutines',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const ways = {
      threads: `def execute(self, requests):
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda i: int(call("double", np.array([i], np.uint8)).exec().output_tensors()[0].as_numpy()[0]), range(20)))
    return [told(got) for _ in requests]`,
      coroutines: `async def execute(self, requests):
    got = await asyncio.gather(*[call("double", np.array([i], np.uint8)).async_exec() for i in range(20)])
    return [told([int(r.output_tensors()[0].as_numpy()[0]) for r in got]) for _ in requests]`,
    }
    const want = `[${Array.from({ length: 20 }, (_, i) => i * 2).join(', ')}]`
    for (const [way, methods] of Object.entries(ways)) {
      const { host, model } = await load(t, methods)
      let calls = 0
      const second = Promise.withResolvers<void>()
      host.models.set('double', async function* (request) {
        calls += 1
        if (calls === 2) second.resolve()
        // The first call is answered once there is another beside it.
        await second.promise
        yield* double(request)
      })
      for (let i = 0; i < 5; i += 1) t.equal(await answerOf(model), want, way)
    }
  },
)

const tensor = (value: number) => ({
  name: 'b',
  datatype: 'UINT8' as const,
  shape: [10_000],
  data: new Uint8Array(10_000).fill(value),
})

await t.test(
  'a decoupled model is read response by response, and can be cancelled',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const { host, model } = await load(
      t,
      `async def again(self):
    return [len(r.output_tensors()) async for r in await call("stream", np.zeros(1, np.uint8)).async_exec(decoupled=True)]

def execute(self, requests):
    got = []
    for response in call("stream", np.zeros(1, np.uint8)).exec(decoupled=True):
        got.append([int(t.as_numpy()[0]) for t in response.output_tensors()])
    first = []
    endless = call("endless", np.zeros(1, np.uint8)).exec(decoupled=True)
    for response in endless:
        if response.has_error():
            first.append(response.error().message())
            break
        first.append(int(response.output_tensors()[0].as_numpy()[0]))
        if len(first) == 3:
            endless.cancel()
    forgotten = call("endless", np.zeros(1, np.uint8)).exec(decoupled=True)
    next(forgotten)
    del forgotten
    return [told([got, asyncio.run(self.again()), first[:3], first[-1]]) for _ in requests]`,
    )
    host.models.set('stream', async function* () {
      for (let i = 0; i < 30; i += 1)
        yield await Promise.resolve({ outputs: [tensor(i)], final: false })
      yield {}
    })
    const cancelled = Promise.withResolvers<void>()
    let cancels = 0
    let ahead = 0
    host.models.set('endless', async function* (_, { signal }) {
      for (let i = 0; !signal.aborted; i += 1) {
        ahead = Math.max(ahead, i)
        yield { outputs: [tensor(i % 256)], final: false }
        await new Promise(setImmediate)
      }
      cancels += 1
      if (cancels === 2) cancelled.resolve()
      yield { error: new ServeError('CANCELLED', 'gone') }
    })
    const list = `[${Array.from({ length: 30 }, (_, i) => `[${i}]`).join(', ')}, []]`
    const ones = `[${'1, '.repeat(30)}0]`
    t.equal(await answerOf(model), `[${list}, ${ones}, [0, 1, 2], 'gone']`)
    t.ok(ahead < 20, `${ahead} responses while the model had three`)
    // The iterator that was dropped ends its call too.
    await cancelled.promise
  },
)

await t.test(
  'what goes wrong with a call is in its response, or raised',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const { host, model } = await load(
      t,
      `def initialize(self, args):
    try:
        call("double", np.zeros(1, np.uint8)).exec()
    except pb_utils.TritonModelException as error:
        self.early = str(error)

def execute(self, requests):
    def of(model):
        response = call(model, np.zeros(1, np.uint8)).exec()
        return (response.error().message(), response.error().code().name, len(response.output_tensors()))
    return [told([self.early, of("nope"), of("bad"), of("short"), of("unfit"), of("inside")]) for _ in requests]`,
    )
    host.models.set('bad', async function* () {
      yield await Promise.resolve({
        error: new ServeError('ENGINE_FAILED', 'it broke', { code: 'UNAVAILABLE' }),
      })
    })
    host.models.set('short', async function* () {})
    host.models.set('unfit', async function* () {
      yield await Promise.resolve({ error: new ServeError('SHAPE_MISMATCH', 'unfit') })
    })
    host.models.set('inside', async function* () {
      const details = { step: 's' }
      yield await Promise.resolve({ error: new ServeError('SHAPE_MISMATCH', 'unfit', { details }) })
    })
    t.equal(
      await answerOf(model),
      `["BLS is only supported during the 'execute' function.", ("Model nope - Error when running inference: Failed for execute the inference request. Model 'nope' is not ready.", 'NOT_FOUND', 0), ('it broke', 'UNAVAILABLE', 0), ('the call ended without a final response', 'INTERNAL', 0), ('Model unfit - Error when running inference: unfit', 'INVALID_ARG', 0), ('unfit', 'INVALID_ARG', 0)]`,
    )
    const lonely = await loadPythonModel(
      t,
      pythonModel(
        `def execute(self, requests):
    return [told(call("double", np.zeros(1, np.uint8)).exec().error().message()) for _ in requests]`,
        HELPERS,
      ),
    )
    t.match(await answerOf(lonely), /this server takes no calls from models$/)
  },
)

await t.test('a call of a process that ends is cancelled', { skip: WITHOUT_PYTHON }, async (t) => {
  const { host, model } = await load(
    t,
    `def execute(self, requests):
    threading.Timer(0.05, lambda: os._exit(1)).start()
    return [told(call("slow", np.zeros(1, np.uint8)).exec().error().message()) for _ in requests]`,
  )
  const cancelled = Promise.withResolvers<void>()
  host.models.set('slow', async function* (_, { signal }) {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    cancelled.resolve()
    yield {}
  })
  t.match(await answerOf(model), /^!Stub process 'm_0' is not healthy: it exited with status 1$/)
  await cancelled.promise
})

await t.test('models load, unload and ask for others', { skip: WITHOUT_PYTHON }, async (t) => {
  const { host, model } = await load(
    t,
    `def execute(self, requests):
    def text(act):
        try:
            return act()
        except pb_utils.TritonModelException as error:
            return str(error)
    return [told([
        pb_utils.is_model_ready("double"),
        pb_utils.is_model_ready("nope", "3"),
        text(lambda: pb_utils.load_model("a")),
        text(lambda: pb_utils.load_model("b", config="{}", files={"file:1/x": b"one", "file:1/y": b"", "file:2/z": b"two"})),
        text(lambda: pb_utils.load_model("refused")),
        text(lambda: pb_utils.unload_model("a", True)),
        text(lambda: pb_utils.unload_model("refused")),
        text(lambda: pb_utils.is_model_ready("double", "-1")),
    ]) for _ in requests]`,
  )
  t.equal(
    await answerOf(model),
    `[True, False, None, None, "Failed to load model: ${REFUSED}not here", None, "Failed to unload model: ${REFUSED}not here", "Failed to check model readiness: ${REFUSED}failed to get model version from specified version string '-1', version should be an integral value > 0"]`,
  )
  t.same(
    host.control,
    [
      'ready double',
      'ready nope 3',
      'load a',
      'load b {} 1/x=one 1/y= 2/z=two',
      'load refused',
      'unload a true',
      'unload refused false',
    ].map((line) => (line === 'ready double' ? 'ready double ' : line)),
  )
})

await t.test('metrics and log lines of models come out', { skip: WITHOUT_PYTHON }, async (t) => {
  const metrics = new CustomMetrics()
  const lines: unknown[] = []
  const keep = (level: string) => (message: string, fields?: object) =>
    void lines.push({ level, message, ...fields })
  const log = {
    ...silentLogger,
    info: keep('info'),
    warn: keep('warn'),
    error: keep('error'),
    debug: keep('debug'),
  }
  const { model } = await load(
    t,
    `def initialize(self, args):
    family = pb_utils.MetricFamily("served", "Requests served", pb_utils.MetricFamily.COUNTER)
    self.served = family.Metric({"model": args["model_name"]})
    self.sizes = pb_utils.MetricFamily("sizes", "Sizes", pb_utils.MetricFamily.HISTOGRAM).Metric(buckets=[1, 10])
    pb_utils.Logger.log_warn("initialized")

def execute(self, requests):
    self.served.increment(len(requests))
    self.sizes.observe(5)
    pb_utils.Logger.log_info("executed")
    pb_utils.Logger.log_error("not really")
    pb_utils.Logger.log_verbose("detail")
    try:
        pb_utils.MetricFamily("served", "other words", pb_utils.MetricFamily.COUNTER)
        pb_utils.MetricFamily("served", "Requests served", pb_utils.MetricFamily.GAUGE)
    except pb_utils.TritonModelException as error:
        return [told([self.served.value(), str(error)]) for _ in requests]`,
    { metrics, log, load: { instances: 2 } },
  )
  await executeOnce(model, [requestOf(1)], 1)
  t.equal(
    await answerOf(model),
    `[2.0, 'Error when creating MetricFamily: ${REFUSED.replaceAll("'", "\\'")}Family name already exists with different type: "served" is a counter']`,
  )
  const [served, sizes] = metrics.read()
  t.same(served?.series, [{ labels: [['model', 'm']], value: 2 }])
  t.same(
    sizes?.series.map(({ value }) => value),
    [0, 2, 2, 10, 2],
  )
  await model.close()
  t.same(metrics.read(), [], 'they end with the model')
  t.match(lines[0], {
    level: 'warn',
    message: 'model log',
    model: 'm',
    version: '1',
    instance: 'm_0',
    text: 'initialized',
    at: /model.py:\d+$/,
  })
  for (const [level, text] of [
    ['info', 'executed'],
    ['error', 'not really'],
    ['debug', 'detail'],
  ]) {
    t.ok(
      lines.some((line) => Object(line).level === level && Object(line).text === text),
      `${level}`,
    )
  }
})

await t.test(
  'a call is for the request that the code works for',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const { host, model } = await load(
      t,
      `async def execute(self, requests):
    for request in requests:
        await call("double", np.zeros(1, np.uint8)).async_exec()
        request.get_response_sender().send(told("done"), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)`,
      { config: pythonConfig({ model_transaction_policy: { decoupled: true } }) },
    )
    const requests = [requestOf(1), requestOf(2)]
    await Promise.all(requests.map((request) => executeOnce(model, [request])))
    t.same(new Set(host.calls.map(({ options }) => options.caller)), new Set(requests))
  },
)

await t.test(
  'a call of a batch is for all its requests that somebody waits for',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const { host, model } = await load(
      t,
      `def execute(self, requests):
    call("double", np.zeros(1, np.uint8)).exec()
    return [told("done") for _ in requests]`,
    )
    const requests = [requestOf(1), requestOf(2), requestOf(3)]
    await executeOnce(model, requests)
    const { options } = host.calls[0] ?? {}
    t.same([options?.caller, ...(options?.batch ?? [])], requests)
  },
)
