import type { Reason, StatusCode } from '@tutti/errors'
import t from 'tap'
import { inferObject, openTestServer } from './testing/test-server.ts'

const typed = (datatype: string, contents: object) => ({
  inputs: [{ name: 'x', datatype, shape: ['1'], contents }],
})
const raw = [Buffer.alloc(4)]
const classes = (parameter: object) => ({
  outputs: [{ name: 'y', parameters: { classification: parameter } }],
})

const refusals: readonly {
  readonly what: string
  readonly request: object
  readonly reason: Reason
  readonly code?: StatusCode
  readonly message: string
}[] = [
  {
    what: 'a model that does not exist',
    request: { model_name: 'nope' },
    reason: 'MODEL_NOT_FOUND',
    code: 'NOT_FOUND',
    message: "Request for unknown model: 'nope' is not found",
  },
  {
    what: 'a decoupled model',
    request: { model_name: 'decoupled' },
    reason: 'UNSUPPORTED',
    code: 'UNIMPLEMENTED',
    message: "ModelInfer RPC doesn't support models with decoupled transaction policy",
  },
  {
    what: 'a sequence id of a wrong kind',
    request: { parameters: { sequence_id: { bool_param: true } } },
    reason: 'INVALID_PARAMETER',
    message:
      "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.",
  },
  {
    what: 'a sequence id that is too long',
    request: { parameters: { sequence_id: { string_param: 'a'.repeat(129) } } },
    reason: 'INVALID_PARAMETER',
    code: 'UNIMPLEMENTED',
    message: 'string correlation ID is 129 characters long, want at most 128',
  },
  {
    what: 'a sequence flag of a wrong kind',
    request: { parameters: { sequence_start: { int64_param: '1' } } },
    reason: 'INVALID_PARAMETER',
    message: "invalid value type for 'sequence_start' parameter, expected bool_param.",
  },
  {
    what: 'a negative priority',
    request: { parameters: { priority: { int64_param: '-1' } } },
    reason: 'INVALID_PARAMETER',
    message: "invalid value for 'priority', expected value >= 0.",
  },
  {
    what: 'a priority of a wrong kind',
    request: { parameters: { priority: { string_param: '1' } } },
    reason: 'INVALID_PARAMETER',
    message: "invalid value type for 'priority' parameter, expected int64_param or uint64_param.",
  },
  {
    what: 'a timeout of a wrong kind',
    request: { parameters: { timeout: { uint64_param: '1' } } },
    reason: 'INVALID_PARAMETER',
    message: "invalid value type for 'timeout' parameter, expected int64_param.",
  },
  {
    what: 'a reserved key',
    request: { parameters: { triton_x: { bool_param: true } } },
    reason: 'INVALID_PARAMETER',
    message:
      "parameter keys starting with 'triton_' are reserved for Triton usage. Only the following keys starting with 'triton_' are allowed: triton_enable_empty_final_response",
  },
  {
    what: 'a custom parameter that is a uint64',
    request: { parameters: { k: { uint64_param: '1' } } },
    reason: 'INVALID_PARAMETER',
    message:
      "invalid value type for 'k' parameter, expected int64_param, bool_param, or string_param.",
  },
  {
    what: 'a parameter without a value',
    request: { parameters: { k: {} } },
    reason: 'INVALID_PARAMETER',
    message:
      "invalid value type for 'k' parameter, expected int64_param, bool_param, or string_param.",
  },
  {
    what: 'an input that comes twice',
    request: {
      inputs: [{ name: 'x', datatype: 'FP32', shape: ['1'] }, { name: 'x' }],
      raw_input_contents: [...raw, ...raw],
    },
    reason: 'INVALID_REQUEST',
    message: "[request id: <id_unknown>] input 'x' already exists in request",
  },
  {
    what: 'an input without data',
    request: { inputs: [{ name: 'x', datatype: 'FP32', shape: ['1'] }] },
    reason: 'INVALID_REQUEST',
    message: "unable to find data for input tensor 'x' for model 'm' in request.",
  },
  {
    what: 'contents beside raw contents',
    request: { ...typed('FP32', { fp32_contents: [1] }), raw_input_contents: raw },
    reason: 'INVALID_REQUEST',
    message:
      "contents field must not be specified when using raw_input_contents for 'x' for model 'm'",
  },
  {
    what: 'more typed elements than a request may have, all inputs together',
    request: {
      inputs: ['x', 'y'].map((name) => ({
        name,
        datatype: 'BYTES',
        shape: ['300000'],
        contents: { bytes_contents: Array.from({ length: 300_000 }, () => Buffer.alloc(0)) },
      })),
    },
    reason: 'MESSAGE_TOO_LARGE',
    code: 'RESOURCE_EXHAUSTED',
    message: 'message has too many fields or typed elements; send tensors as raw contents',
  },
  {
    what: 'contents of another datatype',
    request: typed('FP32', { int_contents: [1] }),
    reason: 'INVALID_REQUEST',
    message:
      "unexpected explicit tensor data for input tensor 'x' for model 'm' of type 'INT32', expected datatype 'FP32'",
  },
  {
    what: 'typed contents for FP16',
    request: typed('FP16', { fp32_contents: [1] }),
    reason: 'INVALID_REQUEST',
    message:
      "unexpected explicit tensor data for input tensor 'x' for model 'm' of type 'FP32', expected datatype 'FP16'",
  },
  {
    what: 'two kinds of contents',
    request: typed('INT32', { int_contents: [1], fp32_contents: [1] }),
    reason: 'INVALID_REQUEST',
    message:
      "unexpected explicit tensor data for input tensor 'x' for model 'm', binary data was already supplied.",
  },
  {
    what: 'an unknown datatype',
    request: {
      id: 'r',
      inputs: [{ name: 'x', datatype: 'FP31', shape: ['1'] }],
      raw_input_contents: raw,
    },
    reason: 'DATATYPE_MISMATCH',
    message:
      "[request id: r] inference input 'x' data-type is '<invalid>', but model 'm' expects 'FP32'",
  },
  {
    what: 'an unknown datatype of an input that the model lacks',
    request: { inputs: [{ name: 'z', datatype: '' }], raw_input_contents: raw },
    reason: 'INVALID_REQUEST',
    message: "unexpected inference input 'z' for model 'm'",
  },
  {
    what: 'an input in shared memory',
    request: {
      inputs: [
        {
          name: 'x',
          parameters: {
            shared_memory_region: { string_param: 'r' },
            shared_memory_byte_size: { int64_param: '4' },
          },
        },
      ],
    },
    reason: 'NOT_FOUND',
    code: 'NOT_FOUND',
    message: "Unable to find shared memory region: 'r'",
  },
  {
    what: 'a shared memory region without a size',
    request: {
      inputs: [{ name: 'x', parameters: { shared_memory_region: { string_param: 'r' } } }],
    },
    reason: 'INVALID_PARAMETER',
    message:
      "'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor 'x'",
  },
  {
    what: 'a place in a shared memory region that is not named',
    request: {
      inputs: [{ name: 'x', parameters: { shared_memory_offset: { int64_param: '4' } } }],
    },
    reason: 'INVALID_PARAMETER',
    message:
      "'shared_memory_offset' can not be specified without 'shared_memory_region' parameter for tensor 'x'",
  },
  {
    what: 'a shared memory region of a wrong kind',
    request: {
      outputs: [{ name: 'y', parameters: { shared_memory_region: { bool_param: true } } }],
    },
    reason: 'INVALID_PARAMETER',
    message:
      "invalid value type for 'shared_memory_region' parameter for tensor 'y', expected string_param.",
  },
  {
    what: 'a classification of a wrong kind',
    request: classes({ string_param: '1' }),
    reason: 'INVALID_PARAMETER',
    message: "invalid value type for 'classification' parameter, expected int64_param",
  },
  {
    what: 'a classification that is not positive',
    request: classes({ int64_param: '0' }),
    reason: 'INVALID_PARAMETER',
    message: "invalid value for 'classification' parameter, expected >= 0",
  },
  {
    what: 'a classification into shared memory',
    request: {
      outputs: [
        {
          name: 'y',
          parameters: {
            classification: { int64_param: '1' },
            shared_memory_region: { string_param: 'r' },
          },
        },
      ],
    },
    reason: 'INVALID_PARAMETER',
    message: "output can't set both 'shared_memory_region' and 'classification'",
  },
]

await t.test("what cannot be executed is refused with Triton's words", async (t) => {
  const served = await openTestServer(t, { m: {}, decoupled: { isDecoupled: true } })
  for (const { what, request, reason, message, code = 'INVALID_ARGUMENT' } of refusals) {
    await t.rejects(inferObject(served, request), { reason, code, message }, what)
  }
  t.equal(served.backend.requests.length, 0, 'and no model hears of it')
})
