import { ServeError } from '@tutti/errors'
import {
  EMPTY_CONTEXT,
  encodeBytesTensor,
  type InferRequest,
  type NamedTensor,
  type RequestContext,
} from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { parseModelConfig } from '../text/parse-model-config.ts'
import { checkInferRequest, compileRequestCheck } from './check-infer-request.ts'

const CONTEXT: RequestContext = { ...EMPTY_CONTEXT, id: 'r1' }

const config = (text: string) => parseModelConfig(`name: "m" ${text}`, 'config.pbtxt')

/** Two inputs; batches of up to 4. */
const BATCHING = config(`max_batch_size: 4
  input { name: "a" data_type: TYPE_FP32 dims: [2, -1] }
  input { name: "b" data_type: TYPE_STRING dims: 1 }
  output { name: "y" data_type: TYPE_FP32 dims: 1 } output { name: "z" data_type: TYPE_FP32 dims: 1 }`)
/** One input, full shapes. */
const PLAIN = config('input { name: "a" data_type: TYPE_INT16 dims: [2, -1] }')
const OPTIONAL = config(`input { name: "a" data_type: TYPE_UINT8 dims: 1 }
  input { name: "b" data_type: TYPE_UINT8 dims: 1 optional: true }
  input { name: "c" data_type: TYPE_UINT8 dims: 1 optional: true }`)
const TEXTS = config('input { name: "s" data_type: TYPE_STRING dims: -1 }')

const SIZES: Readonly<Record<string, number>> = { FP32: 4, INT16: 2, UINT8: 1 }

function tensor(
  name: string,
  datatype: 'FP32' | 'INT16' | 'UINT8',
  shape: readonly number[],
  byteLength = shape.reduce((a, b) => a * b, SIZES[datatype] ?? 1),
): NamedTensor {
  return { name, datatype, shape, data: new Uint8Array(Math.abs(byteLength)) }
}

function texts(name: string, shape: readonly number[], values: readonly string[]): NamedTensor {
  const data = encodeBytesTensor(values.map((value) => new TextEncoder().encode(value)))
  return { name, datatype: 'BYTES', shape, data }
}

function request(inputs: readonly NamedTensor[], requestedOutputs: readonly string[] = []) {
  return { context: CONTEXT, inputs, requestedOutputs } satisfies InferRequest
}

const GOOD = [tensor('a', 'FP32', [3, 2, 5]), texts('b', [3, 1], ['x', '', 'größe'])]
const A_FOR_PLAIN = (shape: readonly number[], bytes?: number) => [
  tensor('a', 'INT16', shape, bytes),
]

await t.test('a request that fits comes back as the model sees it', async (t) => {
  const checked = checkInferRequest(BATCHING, request(GOOD, ['z', 'y', 'z']))
  t.equal(checked.batchSize, 3)
  t.same(checked.requestedOutputs, ['z', 'y'], 'once each')
  t.equal(checked.context, CONTEXT)
  t.equal(checked.inputs[0], GOOD[0], 'viewed, not copied')
  t.equal(checkInferRequest(PLAIN, request(A_FOR_PLAIN([2, 7]))).batchSize, 0)
  t.same(checkInferRequest(config(''), request([])).inputs, [])
})

await t.test('a check can be compiled once and used for many requests', async (t) => {
  const check = compileRequestCheck(BATCHING)
  t.equal(check(request(GOOD)).batchSize, 3)
  t.throws(() => check(request([])), { reason: 'INVALID_REQUEST', message: /got 0 inputs/ })
  t.equal(check(request(GOOD)).batchSize, 3)
})

await t.test('a reshape is applied to what the model sees', async (t) => {
  const reshaping = config(`max_batch_size: 8
    input { name: "a" data_type: TYPE_UINT8 dims: [2, -1, 3] reshape { shape: [-1, 6] } }
    input { name: "s" data_type: TYPE_UINT8 dims: 1 reshape { } }`)
  const inputs = [tensor('a', 'UINT8', [5, 2, 4, 3]), tensor('s', 'UINT8', [5, 1])]
  const checked = checkInferRequest(reshaping, request(inputs))
  t.same(
    checked.inputs.map((input) => input.shape),
    [[5, 4, 6], [5]],
  )
  t.equal(checked.inputs[0]?.data, inputs[0]?.data)
})

await t.test('empty extents pass, a batch of zero too', async (t) => {
  t.equal(checkInferRequest(PLAIN, request(A_FOR_PLAIN([2, 0]))).inputs.length, 1)
  const none = [tensor('a', 'FP32', [0, 2, 5]), texts('b', [0, 1], [])]
  t.equal(checkInferRequest(BATCHING, request(none)).batchSize, 0)
})

await t.test('with optional inputs only the number counts', async (t) => {
  for (const names of [['a'], ['a', 'c'], ['a', 'b', 'c'], ['b']]) {
    const checked = checkInferRequest(
      OPTIONAL,
      request(names.map((name) => tensor(name, 'UINT8', [1]))),
    )
    t.equal(checked.inputs.length, names.length, names.join())
  }
})

const MISSING_TAIL = 'Please provide all required input(s).'
const NOTE =
  'NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.'

const bytes = (...values: number[]): NamedTensor => ({
  name: 's',
  datatype: 'BYTES',
  shape: [1],
  data: Uint8Array.from(values),
})
const replaceA = (a: NamedTensor) => request([a, texts('b', [3, 1], ['', '', ''])])

const REFUSED: readonly (readonly [
  string,
  string,
  Parameters<typeof checkInferRequest>[0],
  InferRequest,
])[] = [
  [
    'INVALID_REQUEST',
    "[request id: r1] input 'a' already exists in request",
    BATCHING,
    request([...GOOD, tensor('a', 'FP32', [1])], ['nope']),
  ],
  [
    'INVALID_REQUEST',
    "unexpected inference output 'nope' for model 'm'",
    BATCHING,
    request([], ['y', 'nope']),
  ],
  [
    'INVALID_REQUEST',
    `[request id: r1] expected 2 inputs but got 0 inputs for model 'm'. Got input(s) [], but missing required input(s) ['a','b']. ${MISSING_TAIL}`,
    BATCHING,
    request([]),
  ],
  [
    'INVALID_REQUEST',
    `[request id: r1] expected 2 inputs but got 3 inputs for model 'm'. Got input(s) ['a','b','q'], but missing required input(s) ]. ${MISSING_TAIL}`,
    BATCHING,
    request([...GOOD, tensor('q', 'FP32', [1])]),
  ],
  [
    'INVALID_REQUEST',
    `[request id: r1] expected number of inputs between 1 and 3 but got 0 inputs for model 'm'. Got input(s) [], but missing required input(s) ['a']. ${MISSING_TAIL}`,
    OPTIONAL,
    request([]),
  ],
  [
    'INVALID_REQUEST',
    "unexpected inference input 'q' for model 'm'",
    BATCHING,
    request([tensor('a', 'FP32', [3, 2, 5]), tensor('q', 'FP32', [])]),
  ],
  [
    'INVALID_REQUEST',
    "unexpected inference input 'q' for model 'm'",
    PLAIN,
    request([tensor('q', 'FP32', [2, 1])]),
  ],
  [
    'SHAPE_MISMATCH',
    "[request id: r1] input 'a' has no shape but model requires batch dimension for 'm'",
    BATCHING,
    replaceA(tensor('a', 'FP32', [])),
  ],
  [
    'SHAPE_MISMATCH',
    "[request id: r1] input 'a' batch size does not match other inputs for 'm'",
    BATCHING,
    replaceA(tensor('a', 'FP32', [2, 2, 5])),
  ],
  // The last of two inputs that are wrong is told.
  [
    'SHAPE_MISMATCH',
    `[request id: r1] unexpected shape for input 'b' for model 'm'. Expected [-1,1], got [3,2]. ${NOTE}`,
    BATCHING,
    request([tensor('a', 'INT16', [3, 9, 9]), texts('b', [3, 2], [])]),
  ],
  [
    'SHAPE_MISMATCH',
    "[request id: r1] inference request batch-size must be <= 4 for 'm'",
    BATCHING,
    request([tensor('a', 'FP32', [5, 2, 5]), texts('b', [5, 1], ['', '', '', '', ''])]),
  ],
  [
    'DATATYPE_MISMATCH',
    "[request id: r1] inference input 'a' data-type is 'INT16', but model 'm' expects 'FP32'",
    BATCHING,
    replaceA(tensor('a', 'INT16', [3, 9, 9])),
  ],
  [
    'SHAPE_MISMATCH',
    `[request id: r1] unexpected shape for input 'a' for model 'm'. Expected [-1,2,-1], got [3,1,5]. ${NOTE}`,
    BATCHING,
    replaceA(tensor('a', 'FP32', [3, 1, 5])),
  ],
  [
    'SHAPE_MISMATCH',
    "[request id: r1] unexpected shape for input 'a' for model 'm'. Expected [2,-1], got [2]. ",
    PLAIN,
    request(A_FOR_PLAIN([2])),
  ],
  [
    'SHAPE_MISMATCH',
    "[request id: r1] All input dimensions should be specified for input 'a' for model 'm', got [2,-1]",
    PLAIN,
    request(A_FOR_PLAIN([2, -1])),
  ],
  [
    'SHAPE_MISMATCH',
    "[request id: r1] All input dimensions should be specified for input 'b' for model 'm', got [-1,1]",
    BATCHING,
    request([tensor('a', 'FP32', [-1, 2, 5]), texts('b', [-1, 1], [])]),
  ],
  [
    'INVALID_TENSOR_DATA',
    "[request id: r1] input byte size mismatch for input 'a' for model 'm'. Expected 12, got 8",
    PLAIN,
    request(A_FOR_PLAIN([2, 3], 8)),
  ],
  [
    'INVALID_TENSOR_DATA',
    "[request id: r1] input byte size mismatch for input 'a' for model 'm'. Expected 36028797018963964, got 8",
    PLAIN,
    request(A_FOR_PLAIN([2, Number.MAX_SAFE_INTEGER], 8)),
  ],
  [
    'INVALID_TENSOR_DATA',
    "[request id: r1] expected 3 string elements for inference input 's' for model 'm', got 2",
    TEXTS,
    request([texts('s', [3], ['x', 'y'])]),
  ],
  [
    'INVALID_TENSOR_DATA',
    "[request id: r1] unexpected number of string elements 2 for inference input 's' for model 'm', expecting 1",
    TEXTS,
    request([texts('s', [1], ['x', 'y', 'z'])]),
  ],
  [
    'INVALID_TENSOR_DATA',
    "[request id: r1] incomplete string length indicator for inference input 's' for model 'm', expecting 4 bytes but only 3 bytes available. Please make sure the string length indicator is in one buffer.",
    TEXTS,
    request([bytes(1, 0, 0)]),
  ],
  [
    'INCOMPLETE_STRING',
    "incomplete string data for inference input 's', expecting string of length 5 but only 2 bytes available",
    TEXTS,
    request([bytes(5, 0, 0, 0, 1, 2)]),
  ],
]

await t.test("what does not fit is refused in Triton's order with Triton's text", async (t) => {
  for (const [reason, message, model, bad] of REFUSED) {
    t.throws(
      () => checkInferRequest(model, bad),
      { reason, code: 'INVALID_ARGUMENT', message, details: { model: 'm' } },
      message,
    )
  }
})

await t.test('a request without an id is <id_unknown>', async (t) => {
  const anonymous = { ...request([]), context: { ...CONTEXT, id: '' } }
  t.throws(() => checkInferRequest(PLAIN, anonymous), {
    message: /^\[request id: <id_unknown>\] expected 1 inputs but got 0 inputs/,
  })
})

await t.test('an input without a declared type takes none', async (t) => {
  const untyped = config('input { name: "a" dims: 1 }')
  t.throws(() => checkInferRequest(untyped, request([tensor('a', 'UINT8', [1])])), {
    reason: 'DATATYPE_MISMATCH',
    message: /data-type is 'UINT8', but model 'm' expects '<invalid>'$/,
  })
})

await t.test('any request passes or is refused with a typed error', async (t) => {
  const input: fc.Arbitrary<NamedTensor> = fc.record({
    name: fc.constantFrom('a', 'b', 's', 'q'),
    datatype: fc.constantFrom('FP32', 'BYTES', 'INT16', 'UINT8'),
    shape: fc.array(fc.oneof(fc.integer({ min: -2, max: 4 }), fc.maxSafeInteger()), {
      maxLength: 4,
    }),
    data: fc.uint8Array({ maxLength: 48 }),
  })
  const reasons = new Set([
    'DATATYPE_MISMATCH',
    'INVALID_REQUEST',
    'INVALID_TENSOR_DATA',
    'SHAPE_MISMATCH',
  ])
  const model = fc.constantFrom(BATCHING, PLAIN, OPTIONAL, TEXTS)
  fc.assert(
    fc.property(model, fc.array(input, { maxLength: 3 }), (chosen, inputs) => {
      try {
        return checkInferRequest(chosen, request(inputs)).inputs.length === inputs.length
      } catch (error) {
        return error instanceof ServeError && reasons.has(error.reason)
      }
    }),
    { numRuns: 500 },
  )
  t.pass('held for every request tried')
})

await t.test(
  'many inputs are refused in the time that their names take, before they are compared',
  (t) => {
    const long = 'n'.repeat(4090)
    const cpuMs = (count: number, times: number): number => {
      const inputs = Array.from({ length: count }, (_, i) => tensor(`${long}${i}`, 'INT16', [2, 3]))
      const before = process.threadCpuUsage()
      for (let i = 0; i < times; i += 1) {
        t.throws(() => checkInferRequest(PLAIN, request(inputs)), /expected 1 inputs/)
      }
      const { user, system } = process.threadCpuUsage(before)
      return (user + system) / 1000
    }
    const [few, many] = [cpuMs(250, 16), cpuMs(4000, 1)]
    // A check that compares each with all others takes 16 times as long.
    t.ok(many < 6 * few + 50, `${few} and ${many} ms of processor time`)
    t.end()
  },
)

/** A BYTES tensor of so many empty elements. */
function empties(count: number, shape: readonly number[]): NamedTensor {
  return { name: 's', datatype: 'BYTES', shape, data: new Uint8Array(4 * count) }
}

await t.test('more string elements than one turn of the loop can look at are refused', (t) => {
  const most = 2 ** 21
  t.equal(checkInferRequest(TEXTS, request([empties(most, [most])])).inputs.length, 1)
  const refusal = {
    reason: 'MESSAGE_TOO_LARGE',
    message:
      /^\[request id: r1\] inputs of inference request for model '\w+' have more than 2097152 string elements$/,
  }
  t.throws(() => checkInferRequest(TEXTS, request([empties(most + 1, [most + 1])])), refusal)
  const PAIR = config(`input { name: "s" data_type: TYPE_STRING dims: -1 }
    input { name: "r" data_type: TYPE_STRING dims: -1 }`)
  const half = empties(most / 2 + 1, [most / 2 + 1])
  const two = request([half, { ...half, name: 'r' }])
  t.throws(() => checkInferRequest(PAIR, two), refusal, 'all inputs together')
  const few = request([empties(most + 1, [3])])
  t.throws(() => checkInferRequest(TEXTS, few), /unexpected number of string elements 4 for/)
  const none = request([empties(3, [2 ** 40])])
  t.throws(() => checkInferRequest(TEXTS, none), /expected 1099511627776 string elements/)
  t.end()
})

await t.test('an error lists no more names than one reads', (t) => {
  const inputs = Array.from({ length: 4000 }, (_, i) => tensor(`input ${i}`, 'INT16', [2, 3]))
  try {
    checkInferRequest(PLAIN, request(inputs))
    t.fail('these are too many')
  } catch (error) {
    const { message } = ServeError.from(error)
    t.match(
      message,
      /got 4000 inputs .* Got input\(s\) \['input 0','input 1',.*,\.\.\.\], but missing/,
    )
    t.ok(message.length < 6000, `${message.length} characters`)
  }
  t.end()
})
