import type { NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { type DeclaredInput, decodeGenerateRequest } from './decode-generate.ts'
import { encodeGenerateResponse } from './encode-generate.ts'
import { failureOf } from './testing/rest-fixtures.ts'

const DECLARED: readonly DeclaredInput[] = [
  { name: 'text', datatype: 'BYTES', shape: [1] },
  { name: 'f', datatype: 'FP32', shape: [-1] },
  { name: 'm', datatype: 'INT32', shape: [2, -1] },
  { name: 'mm', datatype: 'INT32', shape: [-1, -1] },
  { name: 'long', datatype: 'INT64', shape: [1] },
  { name: 'b', datatype: 'BOOL', shape: [1] },
  { name: 'batch', datatype: 'UINT8', shape: [-1, 2, -1] },
  { name: 'half', datatype: 'FP16', shape: [1] },
]

function decode(text: string) {
  return decodeGenerateRequest(Buffer.from(text), DECLARED)
}

await t.test('members called as inputs become tensors, by the rules of 2.51', async (t) => {
  const rows = [
    ['{"text":"hi"}', [1], [2, 0, 0, 0, 104, 105]],
    ['{"text":["hi"]}', [1], [2, 0, 0, 0, 104, 105]],
    ['{"text":[["hi"]]}', [1], [2, 0, 0, 0, 104, 105]],
    ['{"f":1.5}', [1], [0, 0, 192, 63]],
    ['{"f":[]}', [0], []],
    ['{"f":[1,2]}', [2], [0, 0, 128, 63, 0, 0, 0, 64]],
    ['{"m":[1,2]}', [2, 1], [1, 0, 0, 0, 2, 0, 0, 0]],
    ['{"mm":7}', [1, 1], [7, 0, 0, 0]],
    ['{"mm":[7,8]}', [1, 2], [7, 0, 0, 0, 8, 0, 0, 0]],
    ['{"batch":[1,2,3,4]}', [1, 2, 2], [1, 2, 3, 4]],
    ['{"long":9007199254740993}', [1], [1, 0, 0, 0, 0, 0, 32, 0]],
    ['{"b":true}', [1], [1]],
    ['{"parameters":{"b":true}}', [1], [1]],
  ] as const
  for (const [text, shape, bytes] of rows) {
    const { inputs, context } = decode(text)
    t.same(inputs[0]?.shape, shape, text)
    t.same([...(inputs[0]?.data ?? [])], bytes, text)
    t.equal(context.parameters.size, 0)
  }
})

await t.test('all other members are custom parameters, whatever they mean in infer', async (t) => {
  const { context, inputs } = decode(
    '{"id":"a","sequence_id":7,"p":1.5,"q":true,"triton_x":-3,"parameters":{"timeout":"x"}}',
  )
  t.equal(context.id, 'a')
  t.equal(context.correlationId, 0n)
  t.same(inputs, [])
  t.same(
    [...context.parameters],
    [
      ['id', { kind: 'string', value: 'a' }],
      ['sequence_id', { kind: 'int64', value: 7n }],
      ['p', { kind: 'double', value: 1.5 }],
      ['q', { kind: 'bool', value: true }],
      ['triton_x', { kind: 'int64', value: -3n }],
      ['timeout', { kind: 'string', value: 'x' }],
    ],
  )
})

await t.test('an integer beyond 64 bits becomes a double, as in Triton', async (t) => {
  const { context } = decode('{"p":18446744073709551615}')
  t.same([...context.parameters], [['p', { kind: 'double', value: 2 ** 64 }]])
})

await t.test("what does not fit is refused with Triton's code and text", async (t) => {
  const parameter = "has invalid type. It should be either 'int', 'bool', or 'string'."
  const rows = [
    ['[]', 'INTERNAL', 'attempt to get members for non-object'],
    ['', 'INTERNAL', 'failed to parse the request JSON buffer: The document is empty. at 0'],
    ['{"id":5}', 'INTERNAL', "Unable to parse 'id': attempt to access JSON non-string as string"],
    [
      '{"p":-1e400}',
      'INTERNAL',
      'failed to parse the request JSON buffer: Number too big to be stored in double.',
    ],
    ['{"p":[1]}', 'INVALID_ARGUMENT', `parameter 'p' ${parameter}`],
    ['{"p":null}', 'INVALID_ARGUMENT', `parameter 'p' ${parameter}`],
    [
      '{"parameters":{"p":{}}}',
      'INVALID_ARGUMENT',
      `Converting keyword: 'parameters': parameter 'p' ${parameter}`,
    ],
    [
      '{"parameters":5}',
      'INTERNAL',
      "Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object",
    ],
    [
      '{"text":["a","b"]}',
      'INVALID_ARGUMENT',
      "The schema can not convert input 'text' to tensor with proper shape",
    ],
    [
      '{"m":[1,2,3]}',
      'INVALID_ARGUMENT',
      "The schema can not convert input 'm' to tensor with proper shape",
    ],
    [
      '{"text":null}',
      'INTERNAL',
      'Unable to parse JSON bytes array: attempt to access JSON non-string as string',
    ],
    [
      '{"half":1}',
      'INVALID_ARGUMENT',
      'receiving FP16 data via JSON is not supported. Please use the binary data format for input half',
    ],
    [
      '{"text":"a","parameters":{"text":"b"}}',
      'INVALID_ARGUMENT',
      "Converting keyword: 'parameters': [request id: <id_unknown>] input 'text' already exists in request",
    ],
    [
      '{"text":"a","text":"b"}',
      'INVALID_ARGUMENT',
      "[request id: <id_unknown>] input 'text' already exists in request",
    ],
  ] as const
  for (const [text, code, message] of rows) {
    const error = failureOf(() => decode(text))
    t.equal(error.message, message, text)
    t.equal(error.code, code, text)
  }
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [i, 1])))
  t.equal(failureOf(() => decode(many)).reason, 'MESSAGE_TOO_LARGE')
  const long = JSON.stringify({ ['k'.repeat(5000)]: 1 })
  t.equal(failureOf(() => decode(long)).reason, 'MESSAGE_TOO_LARGE')
})

function encode(outputs: readonly NamedTensor[], id = ''): string {
  const parameters = new Map([['sequence_id', { kind: 'int64', value: 0n } as const]])
  const answer = { modelName: 'm', modelVersion: '1', id, parameters, outputs }
  return Buffer.concat([...encodeGenerateResponse(answer)]).toString()
}

await t.test('a response is one flat object, its keys in order', async (t) => {
  const one = { name: 'z', datatype: 'FP32', shape: [1], data: new Uint8Array(4) } as const
  const two = { name: 'a', datatype: 'UINT8', shape: [2, 1], data: new Uint8Array(2) } as const
  const none = { name: 'b', datatype: 'BYTES', shape: [0], data: new Uint8Array(0) } as const
  t.equal(
    encode([one, two, none], 'r'),
    '{"a":[0,0],"b":[],"id":"r","model_name":"m","model_version":"1","sequence_id":0,"z":0.0}',
  )
  t.equal(
    encode([{ ...one, name: 'model_name' }]),
    '{"model_name":"m","model_version":"1","sequence_id":0}',
  )
  const half = { ...one, datatype: 'FP16', data: new Uint8Array(2) } as const
  t.equal(failureOf(() => encode([half])).reason, 'INVALID_REQUEST')
})

/** With a member of its own and one of `parameters`. */
function twoTexts(bytes: number): string {
  const text = 'x'.repeat(bytes)
  return `{"one":"${text}","parameters":{"two":"${text}"}}`
}

await t.test('keys and texts of parameters take 512 KiB at most', async (t) => {
  t.equal(decode(twoTexts(2 ** 18 - 3)).context.parameters.size, 2)
  t.match(
    failureOf(() => decode(twoTexts(2 ** 18))),
    {
      reason: 'MESSAGE_TOO_LARGE',
      message: /parameters take more than 524288 bytes/,
    },
  )
})
