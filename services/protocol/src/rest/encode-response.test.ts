import { encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { encodeRestResponse, type RestBody } from './encode-response.ts'
import { toJsonText } from './json-writer.ts'

function encode(outputs: readonly NamedTensor[], binary: readonly string[] = []): RestBody {
  return encodeWhole(
    { modelName: 'm', modelVersion: '1', id: '', parameters: new Map(), outputs },
    (name) => binary.includes(name),
  )
}

function encodeWhole(...encoding: Parameters<typeof encodeRestResponse>): RestBody {
  const steps = encodeRestResponse(...encoding)
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

function text(body: RestBody): string {
  return Buffer.concat(body.parts).toString()
}

function dataText(tensor: Omit<NamedTensor, 'name'>): string {
  return text(encode([{ name: 'y', ...tensor }]))
    .replace(/^.*"data":/, '')
    .replace(/\}\]\}$/, '')
}

function bytesOf(array: { readonly buffer: ArrayBuffer }): Uint8Array {
  return new Uint8Array(array.buffer)
}

await t.test('every datatype prints as Triton prints it', async (t) => {
  const rows = [
    ['BOOL', [3], Uint8Array.of(0, 1, 2), '[false,true,true]'],
    ['UINT8', [1], Uint8Array.of(255), '[255]'],
    ['UINT16', [1], Uint16Array.of(65535), '[65535]'],
    ['UINT32', [1], Uint32Array.of(4294967295), '[4294967295]'],
    ['UINT64', [1], BigUint64Array.of(2n ** 64n - 1n), '[18446744073709551615]'],
    ['INT8', [1], Int8Array.of(-1), '[-1]'],
    ['INT16', [1], Int16Array.of(-1), '[-1]'],
    ['INT32', [1], Int32Array.of(-1), '[-1]'],
    ['FP32', [3], Float32Array.of(Number.NaN, Infinity, -Infinity), '[NaN,Infinity,-Infinity]'],
    ['INT64', [2], BigInt64Array.of(-(2n ** 63n), 1n), '[-9223372036854775808,1]'],
    [
      'FP32',
      [4],
      Float32Array.of(0.1, 1, -0, 1e30),
      '[0.10000000149011612,1.0,-0.0,1.0000000150474662e+30]',
    ],
    ['FP64', [2], Float64Array.of(0.1, 1e300), '[0.1,1e+300]'],
    ['FP32', [0, 2], new Float32Array(0), '[]'],
    ['FP32', [], Float32Array.of(2), '[2.0]'],
  ] as const
  for (const [datatype, shape, data, want] of rows) {
    t.equal(dataText({ datatype, shape, data: bytesOf(data) }), want, datatype)
  }
  const data = encodeBytesTensor([Buffer.from('é"\n'), new Uint8Array(0)])
  t.equal(dataText({ datatype: 'BYTES', shape: [2], data }), String.raw`["é\"\n",""]`)
})

await t.test('tensors need no alignment and large ones come in parts', async (t) => {
  const shifted = new Uint8Array(9)
  shifted.set(bytesOf(Float64Array.of(1.5)), 1)
  t.equal(dataText({ datatype: 'FP64', shape: [1], data: shifted.subarray(1) }), '[1.5]')
  const many = encode([
    { name: 'y', datatype: 'UINT8', shape: [100_000], data: new Uint8Array(100_000) },
  ])
  t.ok(many.parts.length > 3)
  t.match(JSON.parse(text(many)), { outputs: [{ data: Array.from({ length: 100_000 }, () => 0) }] })
  t.equal(many.byteLength, Buffer.concat(many.parts).byteLength)
})

await t.test('no part is large, and strings are not cut within a character', async (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }), { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 30_000 }),
      (strings, times) => {
        const long = strings.map((one, i) => (i % 2 === 0 ? one.repeat(times) : one))
        const data = encodeBytesTensor(long.map((one) => Buffer.from(one)))
        const body = encode([{ name: 'y', datatype: 'BYTES', shape: [long.length], data }])
        const { outputs } = JSON.parse(text(body))
        t.same(outputs[0].data, long)
        // Six characters for each byte at the most, and the names before it.
        return body.parts.every((part) => part.byteLength < 500_000)
      },
    ),
    { numRuns: 50 },
  )
  const shape = [1_000_000]
  for (const datatype of ['UINT8', 'BYTES'] as const) {
    const data = new Uint8Array(datatype === 'BYTES' ? 4_000_000 : 1_000_000)
    const { parts } = encode([{ name: 'y', datatype, shape, data }])
    t.ok(Math.max(...parts.map((part) => part.byteLength)) < 100_000, datatype)
  }
})

await t.test('the head has the id and parameters only where there are some', async (t) => {
  t.equal(text(encode([])), '{"model_name":"m","model_version":"1","outputs":[]}')
  const body = encodeWhole(
    {
      modelName: 'm"',
      modelVersion: '2',
      id: 'r',
      parameters: new Map([
        ['u', { kind: 'uint64', value: 2n ** 64n - 1n }],
        ['s', { kind: 'string', value: 'x' }],
        ['b', { kind: 'bool', value: true }],
        ['d', { kind: 'double', value: 0.5 }],
      ]),
      outputs: [],
    },
    () => false,
  )
  t.equal(
    text(body),
    '{"id":"r","model_name":"m\\"","model_version":"2","parameters":{"u":18446744073709551615,"s":"x","b":true,"d":0.5},"outputs":[]}',
  )
})

await t.test('binary outputs follow the JSON, as views, in order', async (t) => {
  const a = { name: 'a', datatype: 'FP16', shape: [1], data: Uint8Array.of(1, 2) } as const
  const b = { name: 'b', datatype: 'INT8', shape: [1], data: Uint8Array.of(3) } as const
  const c = { name: 'c', datatype: 'BF16', shape: [1], data: Uint8Array.of(4, 5) } as const
  const body = encode([a, b, c], ['a', 'c'])
  const headerLength = Number(body.headers['inference-header-content-length'])
  t.equal(body.headers['content-type'], 'application/octet-stream')
  t.same(Buffer.concat(body.parts).subarray(headerLength), Buffer.from([1, 2, 4, 5]))
  t.ok(body.parts.includes(a.data), 'not copied')
  t.match(JSON.parse(Buffer.concat(body.parts).subarray(0, headerLength).toString()), {
    outputs: [
      { name: 'a', parameters: { binary_data_size: 2 } },
      { name: 'b', data: [3] },
      { name: 'c', parameters: { binary_data_size: 2 } },
    ],
  })
  const empty = encode(
    [{ name: 'e', datatype: 'FP32', shape: [0], data: new Uint8Array(0) }],
    ['e'],
  )
  t.equal(empty.headers['content-type'], 'application/json')
  t.match(text(empty), '"parameters":{"binary_data_size":0}')
})

await t.test(
  'outputs without a JSON form, or that do not fit their shape, are typed errors',
  async (t) => {
    const rows = [
      [
        'FP16',
        [1],
        Uint8Array.of(0, 0),
        'INVALID_REQUEST',
        /^sending FP16 data via JSON is not supported/,
      ],
      [
        'BF16',
        [1],
        Uint8Array.of(0, 0),
        'INVALID_REQUEST',
        /^sending BF16 data via JSON is not supported/,
      ],
      [
        'BYTES',
        [1],
        encodeBytesTensor([Uint8Array.of(255)]),
        'INVALID_REQUEST',
        /^output 'y' holds bytes that are no UTF-8/,
      ],
      [
        'FP32',
        [2],
        new Uint8Array(4),
        'RESPONSE_INVALID',
        "output tensor shape does not match size of output for 'y': got 4 bytes of FP32 for shape [2]",
      ],
      [
        'BYTES',
        [2],
        encodeBytesTensor([Uint8Array.of(1)]),
        'RESPONSE_INVALID',
        /^output tensor shape does not match/,
      ],
      [
        'BYTES',
        [1],
        Uint8Array.of(9, 0, 0, 0),
        'RESPONSE_INVALID',
        /^output tensor shape does not match/,
      ],
    ] as const
    for (const [datatype, shape, data, reason, message] of rows) {
      t.throws(() => encode([{ name: 'y', datatype, shape, data }]), { reason, message })
    }
    const parameters = new Map([['d', { kind: 'double', value: Number.NaN }] as const])
    t.throws(
      () =>
        encodeWhole(
          { modelName: 'm', modelVersion: '1', id: '', parameters, outputs: [] },
          () => false,
        ),
      {
        reason: 'RESPONSE_INVALID',
        message: "response parameter 'd' is NaN, which has no JSON form",
      },
    )
  },
)

await t.test('the JSON writer prints what JSON.stringify prints, and bigint', async (t) => {
  const value = { a: [1, null, 'x"', true], b: { c: 0.5 }, 'd"': undefined, e: {} }
  t.equal(toJsonText(value), JSON.stringify(value))
  t.equal(toJsonText({ n: 2n ** 64n }), '{"n":18446744073709551616}')
  t.equal(toJsonText(Number.NaN), 'null')
})
