import type { ModelInput } from '@tutti/model-config'
import { modelInput } from '@tutti/model-config/testing'
import { decodeBytesTensor } from '@tutti/tensor'
import t from 'tap'
import { decodeRestRequest, type RestInferRequest } from './decode-request.ts'
import { decodeText, failureOf, modelConfig } from './testing/rest-fixtures.ts'

function binaryInput(size: string): string {
  return `{"inputs":[{"name":"x","datatype":"INT8","shape":[2],"parameters":{"binary_data_size":${size}}}]}`
}

function decodeRaw(
  input: readonly ModelInput[],
  maxBatchSize: number,
  body: Uint8Array,
): RestInferRequest {
  const config = modelConfig(input, maxBatchSize)
  return decodeRestRequest({ body, headerLength: '0', modelName: 'm', config })
}

await t.test('binary inputs are views in order, whatever their alignment', async (t) => {
  const json =
    '{"inputs":[{"name":"a","datatype":"INT8","shape":[1],"parameters":{"binary_data_size":1}},' +
    '{"name":"j","datatype":"INT8","shape":[1],"data":[5]},' +
    '{"name":"b","datatype":"FP32","shape":[1],"parameters":{"binary_data_size":4}},' +
    '{"name":"e","datatype":"FP32","shape":[0],"parameters":{"binary_data_size":0}}]}'
  const body = Buffer.concat([Buffer.from(json), Uint8Array.of(9, 0, 0, 128, 63)])
  const { inputs } = decodeRestRequest({
    body,
    headerLength: ` ${json.length}`,
    modelName: 'm',
    config: modelConfig(),
  })
  t.same(
    inputs.map(({ name, data }) => [name, [...data]]),
    [
      ['a', [9]],
      ['j', [5]],
      ['b', [0, 0, 128, 63]],
      ['e', []],
    ],
  )
  t.equal(inputs[2]?.data.buffer, body.buffer)
})

await t.test('binary sizes that do not add up are refused', async (t) => {
  const rows = [
    {
      size: '3',
      extra: 2,
      message: "unexpected size for input 'x', expecting 1 additional bytes for model 'm'",
    },
    {
      size: '1',
      extra: 2,
      message: "unexpected additional input data for model 'm': got 2 bytes after the JSON, want 1",
    },
    {
      size: '9223372036854775807',
      extra: 2,
      message:
        "unexpected size for input 'x', expecting 9007199254740989 additional bytes for model 'm'",
    },
    {
      size: '"2"',
      extra: 2,
      message:
        "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    {
      size: '2',
      extra: 2,
      header: '1000',
      message: /^inference header size should be in range \(0, \d+\), got: 1000$/,
    },
    {
      size: '2',
      extra: 2,
      header: '-1',
      message: /^inference header size should be in range \(0, \d+\), got: -1$/,
    },
    {
      size: '2',
      extra: 2,
      header: '12a',
      message: /^failed to parse the request JSON buffer: /,
    },
    {
      size: '2',
      extra: 2,
      header: '',
      message: /Raw request must only have 1 input/,
    },
  ]
  for (const { size, extra, header, message } of rows) {
    const head = Buffer.from(binaryInput(size))
    const body = Buffer.concat([head, Buffer.alloc(extra)])
    const headerLength = header ?? String(head.byteLength)
    const error = failureOf(() =>
      decodeRestRequest({ body, headerLength, modelName: 'm', config: modelConfig() }),
    )
    t.match(error, { message })
  }
  t.match(
    failureOf(() => decodeText(binaryInput('2'))),
    {
      message: "unexpected size for input 'x', expecting 2 additional bytes for model 'm'",
    },
  )
})

await t.test('the raw form takes name, datatype and shape from the model', async (t) => {
  const eight = new Uint8Array(8)
  t.match(decodeRaw([modelInput('in', 'TYPE_FP32', [2])], 0, eight).inputs, [
    { name: 'in', datatype: 'FP32', shape: [2], data: eight },
  ])
  t.match(decodeRaw([modelInput('in', 'TYPE_FP32', [-1])], 8, eight).inputs, [{ shape: [1, 2] }])
  t.match(decodeRaw([modelInput('in', 'TYPE_FP32', [-1, 2])], 0, new Uint8Array(0)).inputs, [
    { shape: [0, 2] },
  ])
  t.match(decodeRaw([modelInput('in', 'TYPE_FP32', [-1, 0])], 0, eight).inputs, [{ shape: [0, 0] }])
  const text = decodeRaw([modelInput('in', 'TYPE_STRING', [1])], 4, Buffer.from('abc'))
  t.match(text, {
    isBinaryOutput: true,
    outputs: [],
    inputs: [{ datatype: 'BYTES', shape: [1, 1] }],
  })
  t.same(
    decodeBytesTensor(text.inputs[0]?.data ?? eight).map((bytes) => Buffer.from(bytes).toString()),
    ['abc'],
  )
  const long = Buffer.alloc(64 * 2 ** 20 + 1)
  t.throws(() => decodeRaw([modelInput('in', 'TYPE_STRING', [1])], 0, long), {
    reason: 'MESSAGE_TOO_LARGE',
    message:
      "raw input 'in' of datatype BYTES has 67108865 bytes, want at most 67108864; send it behind a JSON header",
  })
  const rows = [
    [[], 'Raw request must only have 1 input (found 1) to be deduced but got 0 inputs in'],
    [
      [modelInput('in', 'TYPE_FP32', [1]), modelInput('in', 'TYPE_FP32', [1])],
      'Raw request must only have 1 input',
    ],
    [
      [modelInput('in', 'TYPE_FP32', [-1, -1])],
      "The shape of the raw input 'in' can not be deduced because there are more than one variable-sized dimension",
    ],
    [
      [modelInput('in', 'TYPE_STRING', [2])],
      "For BYTE datatype raw input 'in', the model must have input shape [1]",
    ],
    [
      [modelInput('in', 'TYPE_STRING', [-1])],
      "For BYTE datatype raw input 'in', the model must have input shape [1]",
    ],
    [[modelInput('in', 'TYPE_INVALID', [1])], 'invalid datatype for input in'],
  ] as const
  for (const [inputs, message] of rows) {
    const error = failureOf(() => decodeRaw(inputs, 0, eight))
    t.equal(error.code, 'INVALID_ARGUMENT')
    t.ok(error.message.includes(message), error.message)
  }
})
