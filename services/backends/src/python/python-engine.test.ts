// needs: python
import {
  DATATYPES,
  type Datatype,
  encodeBytesTensor,
  isDatatype,
  type NamedTensor,
} from '@tutti/tensor'
import { RecordedResponses } from '@tutti/tensor/testing'
import {
  array,
  assert,
  asyncProperty,
  constant,
  constantFrom,
  integer,
  nat,
  oneof,
  tuple,
} from 'fast-check'
import t from 'tap'
import { executeOnce } from '../testing/execute.ts'
import { modelConfig, stepRequest } from '../testing/model-source.ts'
import {
  answerWith,
  bytesRequestInput,
  loadPythonModel,
  pythonConfig,
  pythonModel,
  WITHOUT_PYTHON,
} from '../testing/python-model.ts'

const NAMES = Object.keys(DATATYPES).filter(isDatatype)

/** Gives every input back under a name that begins with `y`: `as_numpy` where there is one, else through DLPack. */
const ECHO = pythonModel(`def execute(self, requests):
    responses = []
    for request in requests:
        outputs = []
        for tensor in request.inputs():
            name = "y" + tensor.name()[1:]
            if tensor.triton_dtype() == 14:
                try:
                    tensor.as_numpy()
                    raise AssertionError("as_numpy of BF16")
                except pb_utils.TritonModelException:
                    outputs.append(pb_utils.Tensor.from_dlpack(name, tensor))
            else:
                array = tensor.as_numpy()
                if tensor.triton_dtype() == 11:
                    array = array.copy()
                outputs.append(pb_utils.Tensor(name, array))
        responses.append(pb_utils.InferenceResponse(outputs))
    return responses`)

const DIMS = array(integer({ min: 0, max: 5 }), { maxLength: 4 })
/** Tensors from nothing to larger than what travels in a frame. */
const SHAPES = oneof(DIMS, DIMS, constant([3000]), constant([40, 1000]))

function tensorOf(
  name: string,
  datatype: Datatype,
  shape: readonly number[],
  seed: number,
): NamedTensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  const { itemSize } = DATATYPES[datatype]
  const byte = (i: number): number => (i * 31 + seed) % (datatype === 'BOOL' ? 2 : 256)
  if (itemSize === null) {
    const elements = Array.from({ length: count }, (_, i) =>
      Uint8Array.from({ length: (i * 7 + seed) % 12 }, (_, j) => byte(i + j)),
    )
    return { name, datatype, shape, data: encodeBytesTensor(elements) }
  }
  return {
    name,
    datatype,
    shape,
    data: Uint8Array.from({ length: count * itemSize }, (_, i) => byte(i)),
  }
}

const fp32Port = (name: string) => ({ name, type: 'TYPE_FP32' as const, dims: [-1] })

const REQUESTS = array(
  array(tuple(constantFrom(...NAMES), SHAPES, nat(255)), {
    minLength: 1,
    maxLength: 4,
  }),
  { minLength: 1, maxLength: 5 },
)

for (const sharesMemory of [true, false]) {
  const how = sharesMemory ? 'shared memory' : 'a socket'
  await t.test(
    `batches of any tensors come back as they were, over ${how}`,
    { skip: WITHOUT_PYTHON },
    async (t) => {
      const names = Array.from({ length: 4 }, (_, i) => i)
      const config = modelConfig(
        names.map((i) => fp32Port(`x${i}`)),
        names.map((i) => fp32Port(`y${i}`)),
        { backend: 'python' },
      )
      const model = await loadPythonModel(t, ECHO, { config, sharesMemory })
      await assert(
        asyncProperty(REQUESTS, async (batch) => {
          const requests = batch.map((tensors) =>
            stepRequest(
              tensors.map(([type, shape, seed], i) => tensorOf(`x${i}`, type, shape, seed)),
            ),
          )
          const responses = await executeOnce(model, requests)
          for (const [i, { inputs }] of requests.entries()) {
            const response = responses[i]
            if (response?.error !== undefined) throw response.error
            const got = response?.outputs.map((o) => [
              o.name,
              o.datatype,
              o.shape,
              Buffer.from(o.data).toString('hex'),
            ])
            const want = inputs.map((x) => [
              `y${x.name.slice(1)}`,
              x.datatype,
              x.shape,
              Buffer.from(x.data).toString('hex'),
            ])
            t.strictSame(got, want)
          }
        }),
        { numRuns: 60 },
      )
    },
  )
}

await t.test(
  'large tensors, which are copied off the event loop, come back as they were beside others',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const names = [0, 1, 2]
    const config = modelConfig(
      names.map((i) => fp32Port(`x${i}`)),
      names.map((i) => fp32Port(`y${i}`)),
      { backend: 'python' },
    )
    const model = await loadPythonModel(t, ECHO, { config, sharesMemory: true })
    const requests = [1, 2].map((seed) =>
      stepRequest([
        tensorOf('x0', 'UINT8', [9_000_001], seed),
        tensorOf('x1', 'FP32', [10], seed),
        tensorOf('x2', 'BYTES', [300_000], seed),
      ]),
    )
    const responses = await executeOnce(model, requests)
    for (const [i, { inputs }] of requests.entries()) {
      const outputs = responses[i]?.outputs ?? []
      t.same(
        outputs.map(({ name }) => name),
        ['y0', 'y1', 'y2'],
      )
      for (const [at, { data }] of inputs.entries())
        t.ok(Buffer.from(data).equals(outputs[at]?.data ?? new Uint8Array()), `input ${at}`)
    }
  },
)

await t.test(
  'large responses come in their order, and before the end of the process',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await loadPythonModel(
      t,
      pythonModel(`def execute(self, requests):
    sender = requests[0].get_response_sender()
    final = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
    for size, flags in ((3000000, 0), (1, 0), (3000001, final)):
        array = np.full(size, size % 7, np.uint8)
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", array)]), flags=flags)
    os._exit(7)`),
      { config: pythonConfig({ model_transaction_policy: { decoupled: true } }) },
    )
    const sink = new RecordedResponses()
    const { signal } = new AbortController()
    const request = stepRequest([bytesRequestInput(1)])
    await model.execute([{ request, sink }], { instance: 0, signal })
    const got = sink.responses.map(({ outputs, final }) => {
      const data = outputs[0]?.data ?? new Uint8Array()
      return [data.byteLength, data.every((byte) => byte === data.byteLength % 7), final]
    })
    t.same(got, [
      [3_000_000, true, false],
      [1, true, false],
      [3_000_001, true, true],
    ])
  },
)

await t.test(
  'initialize gets the arguments that Triton gives, all texts',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const config = pythonConfig({ max_batch_size: 4 })
    const code = pythonModel(`def initialize(self, args):
    assert all(type(v) is str for v in args.values()), args
    self.args = args

def execute(self, requests):
    import json
    args = dict(self.args)
    args["max_batch_size"] = json.loads(args.pop("model_config"))["max_batch_size"]
    args["here"] = [os.getcwd(), os.access(".", os.W_OK), pb_utils.get_model_dir()]
    args["argv"] = sys.argv
    text = json.dumps(args).encode()
    return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.frombuffer(text, np.uint8))]) for _ in requests]`)
    const model = await loadPythonModel(t, code, { config })
    const [response] = await executeOnce(model, [stepRequest([bytesRequestInput(1)])])
    const args = JSON.parse(Buffer.from(response?.outputs[0]?.data ?? []).toString())
    t.match(args, {
      model_instance_kind: 'CPU',
      model_instance_name: 'm_0',
      model_instance_device_id: '0',
      model_version: '1',
      model_name: 'm',
      max_batch_size: 4,
    })
    t.same(args.argv, [''], 'our own command line is not the model’s')
    t.match(args.model_repository, /\/m$/)
    t.same(args.here.slice(1), [true, `${args.model_repository}/1`])
    t.notMatch(args.here[0], args.model_repository, 'the working folder is not the repository')
  },
)

await t.test(
  'a request brings its id, flags, parameters and the outputs that it wants',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const code = pythonModel(`def execute(self, requests):
    responses = []
    for r in requests:
        text = repr([r.request_id(), r.correlation_id(), r.flags(), r.timeout(), r.parameters(), sorted(r.requested_output_names())])
        responses.append(pb_utils.InferenceResponse(
            [pb_utils.Tensor("y", np.frombuffer(text.encode(), np.uint8)), pb_utils.Tensor("undeclared", np.zeros(3))],
            parameters={"a": True, "b": 2**62, "c": 1.0, "d": "é", "e": float("-inf")}))
    return responses`)
    const model = await loadPythonModel(t, code)
    const context = {
      id: 'é1',
      correlationId: 2n ** 63n,
      sequenceStart: true,
      sequenceEnd: true,
      priority: 3n,
      timeoutUs: 77n,
      parameters: new Map([
        ['s', { kind: 'string' as const, value: '"\n' }],
        ['i', { kind: 'int64' as const, value: 2n ** 62n }],
        ['f', { kind: 'double' as const, value: 2 }],
        ['b', { kind: 'bool' as const, value: false }],
      ]),
    }
    const input = bytesRequestInput(1)
    const [full, plain, empty] = await executeOnce(model, [
      stepRequest([input], { context, requestedOutputs: ['y'] }),
      stepRequest([input]),
      stepRequest([input], { context: { ...context, correlationId: '' } }),
    ])
    const text = (response: typeof full) => Buffer.from(response?.outputs[0]?.data ?? []).toString()
    t.equal(
      text(full),
      `['é1', 9223372036854775808, 3, 77, '{"s":"\\\\"\\\\n","i":4611686018427387904,"f":2.0,"b":false}', ['y']]`,
    )
    t.equal(text(plain), `['', 0, 0, 0, '{}', ['y']]`)
    t.match(text(empty), "['é1', '', 3, ", 'an empty text as a correlation id')
    t.same(
      full?.outputs.map(({ name }) => name),
      ['y'],
      'what is not declared is dropped',
    )
    t.same(
      full?.parameters,
      new Map<string, unknown>([
        ['a', { kind: 'bool', value: true }],
        ['b', { kind: 'int64', value: 2n ** 62n }],
        ['c', { kind: 'double', value: 1 }],
        ['d', { kind: 'string', value: 'é' }],
        ['e', { kind: 'double', value: -Infinity }],
      ]),
    )
  },
)

await t.test(
  'inputs are private: a model may write to them and keep them',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const code = pythonModel(`def initialize(self, args):
    self.kept = []

${answerWith('self.keep(x)')}

def keep(self, x):
    self.kept.append(x)
    x += 1
    return np.array([sum(int(k.sum()) for k in self.kept) % 251], np.uint8)`)
    const model = await loadPythonModel(t, code)
    const data = new Uint8Array(100_000).fill(1)
    const want: number[] = []
    const got: number[] = []
    for (let i = 1; i <= 20; i += 1) {
      const [response] = await executeOnce(model, [
        stepRequest([{ name: 'x', datatype: 'UINT8', shape: [data.length], data }]),
      ])
      got.push(response?.outputs[0]?.data[0] ?? -1)
      want.push((i * 200_000) % 251)
    }
    t.same(got, want, 'what was kept is not overwritten by later requests')
    t.ok(
      data.every((value) => value === 1),
      'the caller’s tensor is as it was',
    )
  },
)

await t.test(
  'inputs may end with the collector at any moment, also while the result is on its way',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const code = pythonModel(
      `def initialize(self, args):
    self.times = 0

def execute(self, requests):
    self.times += 1
    gc.set_threshold(2 + self.times % 8)
    inputs = requests[0].inputs()
    inputs.append(inputs)
    return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.zeros(1, np.uint8))])]`,
      'import gc',
    )
    const model = await loadPythonModel(t, code)
    const data = new Uint8Array(20_000)
    const input = { name: 'x', datatype: 'UINT8' as const, shape: [data.length], data }
    for (let i = 0; i < 100; i += 1) {
      const [response] = await executeOnce(model, [stepRequest([input])])
      if (response?.error !== undefined) throw response.error
    }
  },
)

await t.test(
  'instances execute side by side, each in its own process',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const code = pythonModel(
      answerWith('np.frombuffer(os.getpid().to_bytes(4, "little"), np.uint8)'),
    )
    const model = await loadPythonModel(t, code, { load: { instances: 3 } })
    const input = bytesRequestInput(1)
    const all = await Promise.all(
      [0, 1, 2].map((instance) => executeOnce(model, [stepRequest([input])], instance)),
    )
    const processes = all.map(([response]) =>
      Buffer.from(response?.outputs[0]?.data ?? []).toString('hex'),
    )
    t.equal(new Set(processes).size, 3)
  },
)

await t.test(
  'a model may start processes in each way that Python has',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const head = `import multiprocessing
def double(array):
    return array * 2`
    for (const way of ['fork', 'spawn', 'forkserver']) {
      const code = pythonModel(
        `def execute(self, requests):
    with multiprocessing.get_context("${way}").Pool(1) as pool:
        return self.answer(requests, pool)

${answerWith('pool.apply_async(double, (x,)).get(30)').replace('def execute(self, requests)', 'def answer(self, requests, pool)')}`,
        head,
      )
      const model = await loadPythonModel(t, code)
      const [response] = await executeOnce(model, [stepRequest([bytesRequestInput(1, 2, 3)])])
      t.same(response?.outputs[0]?.data, Buffer.from([2, 4, 6]), way)
    }
  },
)
