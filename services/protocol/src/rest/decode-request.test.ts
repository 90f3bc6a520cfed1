import type { NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { decodeRestRequest } from './decode-request.ts'
import { decodeText, failureOf, modelConfig } from './testing/rest-fixtures.ts'

function decodeInput(datatype: string, shape: string, data: string): NamedTensor | undefined {
  return decodeText(
    `{"inputs":[{"name":"x","datatype":"${datatype}","shape":${shape},"data":${data}}]}`,
  ).inputs[0]
}

await t.test('every datatype with a JSON form becomes little-endian bytes', async (t) => {
  const rows = [
    ['BOOL', '[2]', '[true,false]', [1, 0]],
    ['UINT8', '[2]', '[0,255]', [0, 255]],
    ['UINT16', '[1]', '[65535]', [255, 255]],
    ['UINT32', '[1]', '[4294967295]', [255, 255, 255, 255]],
    ['UINT64', '[1]', '[18446744073709551615]', Array.from({ length: 8 }, () => 255)],
    ['UINT64', '[1]', '[1]', [1, 0, 0, 0, 0, 0, 0, 0]],
    ['INT8', '[1]', '[-128]', [128]],
    ['INT16', '[1]', '[-2]', [254, 255]],
    ['INT32', '[1]', '[-2147483648]', [0, 0, 0, 128]],
    ['INT64', '[1]', '[-9223372036854775808]', [0, 0, 0, 0, 0, 0, 0, 128]],
    ['INT64', '[1]', '[9007199254740993]', [1, 0, 0, 0, 0, 0, 32, 0]],
    ['FP32', '[1]', '[1.5]', [0, 0, 192, 63]],
    ['FP64', '[1]', '[-2]', [0, 0, 0, 0, 0, 0, 0, 192]],
    ['BYTES', '[2]', '["é",""]', [2, 0, 0, 0, 195, 169, 0, 0, 0, 0]],
    ['FP32', '[0,3]', '[]', []],
    // It has no data to be read.
    ['FP16', '[0]', '[]', []],
    ['FP32', '[]', '[1]', [0, 0, 128, 63]],
  ] as const
  for (const [datatype, shape, data, want] of rows) {
    const input = decodeInput(datatype, shape, data)
    t.same([...(input?.data ?? [])], want, `${datatype} ${data}`)
    t.same(input?.shape, JSON.parse(shape))
  }
})

await t.test('data may be nested in any way and is read row-major', async (t) => {
  for (const data of ['[1,2,3,4]', '[[1,2],[3,4]]', '[[[1],[2]],[[3],[4]]]', '[[1],2,[3,[4]]]']) {
    t.same([...(decodeInput('INT8', '[2,2]', data)?.data ?? [])], [1, 2, 3, 4], data)
  }
  const nested = decodeInput('INT64', '[2,1]', '[ [ 9007199254740993 ] , [ -1 ] ]')
  t.same(
    [...new BigInt64Array(nested?.data.slice().buffer ?? new ArrayBuffer(0))],
    [9007199254740993n, -1n],
  )
})

await t.test("data that does not fit is refused with Triton's text", async (t) => {
  const tooBig = 'failed to parse the request JSON buffer: Number too big to be stored in double.'
  const parse = "Unable to parse 'data': "
  const rows = [
    [
      'FP32',
      '[2]',
      '[1]',
      'INTERNAL',
      `${parse}Shape does not match true shape of 'data' field: input 'x' has 1 elements, want 2 for shape [2]`,
    ],
    [
      'FP32',
      '[1]',
      '[1,2]',
      'INTERNAL',
      `${parse}Shape does not match true shape of 'data' field: input 'x' has 2 elements, want 1 for shape [1]`,
    ],
    [
      'FP32',
      '[9007199254740991,9007199254740991]',
      '[1]',
      'INTERNAL',
      /^Unable to parse 'data': Shape does not match/,
    ],
    ['FP32', '[1]', '["1"]', 'INTERNAL', `${parse}attempt to access JSON non-number as double`],
    ['FP32', '[1]', '[null]', 'INTERNAL', `${parse}attempt to access JSON non-number as double`],
    ['BOOL', '[1]', '[1]', 'INTERNAL', `${parse}attempt to access JSON non-boolean as boolean`],
    [
      'INT32',
      '[1]',
      '[1.5]',
      'INTERNAL',
      `${parse}attempt to access JSON non-signed-integer as signed-integer`,
    ],
    [
      'UINT8',
      '[1]',
      '[true]',
      'INTERNAL',
      `${parse}attempt to access JSON non-unsigned-integer as unsigned-integer`,
    ],
    [
      'UINT64',
      '[1]',
      '[1e20]',
      'INTERNAL',
      `${parse}attempt to access JSON non-unsigned-integer as unsigned-integer`,
    ],
    [
      'INT64',
      '[1]',
      '["9"]',
      'INTERNAL',
      `${parse}attempt to access JSON non-signed-integer as signed-integer`,
    ],
    [
      'BYTES',
      '[1]',
      '[1]',
      'INTERNAL',
      'Unable to parse JSON bytes array: attempt to access JSON non-string as string',
    ],
    [
      'BYTES',
      '[1]',
      '["\\ud800"]',
      'INTERNAL',
      `${parse}the surrogate pair in a string is invalid`,
    ],
    [
      'UINT8',
      '[1]',
      '[256]',
      'INVALID_ARGUMENT',
      `${parse}value 256 of input 'x' is out of range for UINT8`,
    ],
    [
      'INT8',
      '[1]',
      '[-129]',
      'INVALID_ARGUMENT',
      `${parse}value -129 of input 'x' is out of range for INT8`,
    ],
    [
      'UINT64',
      '[1]',
      '[18446744073709551616]',
      'INTERNAL',
      `${parse}attempt to access JSON non-unsigned-integer as unsigned-integer`,
    ],
    [
      'UINT64',
      '[1]',
      '[-1]',
      'INTERNAL',
      `${parse}attempt to access JSON non-unsigned-integer as unsigned-integer`,
    ],
    [
      'UINT8',
      '[1]',
      '[-1]',
      'INTERNAL',
      `${parse}attempt to access JSON non-unsigned-integer as unsigned-integer`,
    ],
    [
      'INT32',
      '[1]',
      '[9223372036854777856]',
      'INTERNAL',
      `${parse}attempt to access JSON non-signed-integer as signed-integer`,
    ],
    ['INT32', '[2]', '[1e400,1]', 'INTERNAL', tooBig],
    ['FP32', '[1]', '[1e400]', 'INTERNAL', tooBig],
    [
      'FP16',
      '[1]',
      '[1]',
      'INVALID_ARGUMENT',
      'receiving FP16 data via JSON is not supported. Please use the binary data format for input x',
    ],
    [
      'BF16',
      '[1]',
      '[1]',
      'INVALID_ARGUMENT',
      'receiving BF16 data via JSON is not supported. Please use the binary data format for input x',
    ],
    [
      'FP33',
      '[1]',
      '[1]',
      'INVALID_ARGUMENT',
      /^invalid datatype for input x: got 'FP33', want one of BOOL, /,
    ],
    ['INT8', '[1]', '7', 'INTERNAL', `${parse}attempt to access JSON non-array as array`],
    [
      'INT8',
      '[1]',
      `${'['.repeat(70)}1${']'.repeat(70)}`,
      'INTERNAL',
      `${parse}arrays nest deeper than 64`,
    ],
  ] as const
  for (const [datatype, shape, data, code, message] of rows) {
    const error = failureOf(() => decodeInput(datatype, shape, data))
    t.match(error, { code, message }, `${datatype} ${data.slice(0, 40)}`)
  }
})

await t.test(
  "documents that are not what they should be are refused with Triton's text",
  async (t) => {
    const rows = [
      // No body is a raw one of 0 bytes, as measured.
      ['', 'INVALID_ARGUMENT', '[request id: <id_unknown>] Raw request must only have 1 input'],
      [' ', 'INTERNAL', 'failed to parse the request JSON buffer: The document is empty. at 0'],
      [
        '{"inputs":[}',
        'INTERNAL',
        'failed to parse the request JSON buffer: Invalid value. Unexpected token',
      ],
      ['{"a":1 2}', 'INTERNAL', 'failed to parse the request JSON buffer: Invalid value. at 7'],
      [
        '[]',
        'INTERNAL',
        "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
      ],
      [
        '{}',
        'INTERNAL',
        "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
      ],
      [
        '{"inputs":{}}',
        'INTERNAL',
        "Unable to parse 'inputs': attempt to access JSON non-array as array",
      ],
      ['{"inputs":[1]}', 'INVALID_ARGUMENT', 'Input must set only one of the following fields: '],
      [
        '{"id":7,"inputs":[]}',
        'INTERNAL',
        "Unable to parse 'id': attempt to access JSON non-string as string",
      ],
      [
        '{"inputs":[{"data":[]}]}',
        'INTERNAL',
        "Unable to parse 'name': attempt to access non-existing object member 'name'",
      ],
      [
        '{"inputs":[{"name":"x","data":[]}]}',
        'INTERNAL',
        "Unable to parse 'datatype': attempt to access non-existing object member 'datatype'",
      ],
      [
        '{"inputs":[{"name":"x","datatype":"FP32","data":[]}]}',
        'INTERNAL',
        "Unable to parse 'shape': attempt to access non-existing object member 'shape'",
      ],
      [
        '{"inputs":[{"name":"x","datatype":"FP32","shape":[-1],"data":[]}]}',
        'INTERNAL',
        "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
      ],
      [
        '{"inputs":[{"name":"x","datatype":"FP32","shape":[9007199254740993],"data":[]}]}',
        'INVALID_ARGUMENT',
        "shape of input 'x' has an extent that is too large, want 0 to 2^53 - 1",
      ],
      [
        '{"inputs":[{"name":"x","datatype":"FP32","shape":[9007199254740991,3],"data":[]}]}',
        'INTERNAL',
        "Unable to parse 'data': Shape does not match true shape of 'data' field: input 'x' has 0 elements, want 27021597764222973 for shape [9007199254740991,3]",
      ],
      [
        '{"inputs":[{"name":"x"}]}',
        'INVALID_ARGUMENT',
        "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But no field is set",
      ],
      [
        '{"inputs":[{"name":"x","data":[],"parameters":{"binary_data_size":1}}]}',
        'INVALID_ARGUMENT',
        /But set 'data' 'binary_data_size'$/,
      ],
      [
        '{"inputs":[],"outputs":[{"name":"y","parameters":{"shared_memory_region":"r","binary_data":true}}]}',
        'INVALID_ARGUMENT',
        "Output can't set both 'shared_memory_region' and 'binary_data'",
      ],
      [
        '{"inputs":[],"outputs":[{"name":"y","parameters":{"shared_memory_region":"r","classification":1}}]}',
        'INVALID_ARGUMENT',
        "Output can't set both 'shared_memory_region' and 'classification'",
      ],
      [
        '{"inputs":[],"outputs":{}}',
        'INTERNAL',
        "Unable to parse 'outputs': attempt to access JSON non-array as array",
      ],
      [
        '{"inputs":[],"outputs":["y"]}',
        'INTERNAL',
        "Unable to parse 'name': attempt to access non-existing object member 'name'",
      ],
      [
        '{"inputs":[],"outputs":[{"name":"y","parameters":{"classification":-1}}]}',
        'INTERNAL',
        "Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer",
      ],
      [
        '{"inputs":[],"outputs":[{"name":"y","parameters":{"binary_data":1}}]}',
        'INTERNAL',
        "Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean",
      ],
    ] as const
    for (const [text, code, message] of rows) {
      const error = failureOf(() => decodeText(text))
      t.equal(error.code, code, text)
      if (typeof message === 'string') t.ok(error.message.startsWith(message), error.message)
      else t.match(error.message, message)
    }
    const invalidUtf8 = Buffer.from([0x22, 0xff, 0x22])
    t.match(
      failureOf(() =>
        decodeRestRequest({ body: invalidUtf8, modelName: 'm', config: modelConfig() }),
      ),
      { reason: 'MALFORMED_MESSAGE', message: /Invalid encoding in string/ },
    )
  },
)

await t.test(
  'an input that comes twice is refused, an output that comes twice counts once',
  async (t) => {
    const x = '{"name":"x","datatype":"INT8","shape":[1],"data":[1]}'
    t.match(
      failureOf(() => decodeText(`{"id":"r1","inputs":[${x},${x}]}`)),
      {
        code: 'INVALID_ARGUMENT',
        message: "[request id: r1] input 'x' already exists in request",
      },
    )
    t.match(
      failureOf(() => decodeText(`{"inputs":[${x},${x}]}`)),
      {
        message: "[request id: <id_unknown>] input 'x' already exists in request",
      },
    )
    const y = '{"name":"y","parameters":{"classification":2}}'
    t.same(decodeText(`{"inputs":[${x}],"outputs":[${y},{"name":"y"},{"name":"z"}]}`).outputs, [
      { name: 'y', classification: 2, isBinary: false },
      { name: 'z', classification: 0, isBinary: false },
    ])
  },
)

await t.test('a flood of containers is refused before it fills the heap', async (t) => {
  const flood = Buffer.from(`[${'{},'.repeat(2 ** 22)}{}]`)
  t.match(
    failureOf(() => decodeRestRequest({ body: flood, modelName: 'm', config: modelConfig() })),
    {
      reason: 'MESSAGE_TOO_LARGE',
      message: /holds 4194306 objects and arrays, want at most 4194304/,
    },
  )
  const text = Buffer.from(`{"inputs":[],"x":"${'{\\"['.repeat(2 ** 21)}"}`)
  t.same(decodeRestRequest({ body: text, modelName: 'm', config: modelConfig() }).inputs, [])
})

function many(count: number, entry: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => entry(i)).join(',')
}

function input(shape: string): string {
  return `{"name":"x","datatype":"INT8","shape":[${shape}],"data":[1]}`
}

await t.test('more entries than MESSAGE_BOUNDS are refused, as over gRPC', async (t) => {
  const rows = [
    ['inputs', `{"inputs":[${many(4097, () => input('1'))}]}`],
    ['outputs', `{"inputs":[],"outputs":[${many(4097, (i) => `{"name":"y${i}"}`)}]}`],
    ['rank', `{"inputs":[${input(many(1025, () => '1'))}]}`],
    ['parameters', `{"inputs":[],"parameters":{${many(4097, (i) => `"p${i}":1`)}}}`],
  ] as const
  for (const [what, text] of rows) {
    t.match(
      failureOf(() => decodeText(text)),
      {
        reason: 'MESSAGE_TOO_LARGE',
        message: `message has more than ${what === 'rank' ? 1024 : 4096} entries of ${what}`,
      },
    )
  }
})

await t.test('each of many inputs has its own integers beyond 2^53', async (t) => {
  const numbers = Array.from({ length: 4096 }, (_, i) => 2n ** 62n + BigInt(i))
  const inputs = numbers.map(
    (number, i) => `{"name":"x${i}","datatype":"INT64","shape":[1],"data":[${number}]}`,
  )
  const decoded = decodeText(`{"inputs":[${inputs.join(',')}]}`).inputs
  t.same(
    decoded.map(({ data }) => Buffer.from(data).readBigInt64LE()),
    numbers,
  )
})

await t.test('a tensor in shared memory is its place', (t) => {
  const at = '{"shared_memory_region":"r","shared_memory_offset":8,"shared_memory_byte_size":16}'
  // NVIDIA's client says of an output there that it is not binary.
  const { inputs, outputs } = decodeText(
    `{"inputs":[{"name":"x","datatype":"FP32","shape":[4],"parameters":${at}}],` +
      `"outputs":[{"name":"y","parameters":{"binary_data":false,${at.slice(1)}}]}`,
  )
  const place = { region: 'r', offset: 8, byteSize: 16 }
  t.same(inputs, [{ name: 'x', datatype: 'FP32', shape: [4], data: new Uint8Array(0), place }])
  t.same(outputs, [{ name: 'y', classification: 0, isBinary: false, place }])
  t.end()
})
