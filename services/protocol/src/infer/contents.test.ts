import { ServeError } from '@tutti/errors'
import { DATATYPES, type Datatype, isDatatype } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { inferenceServices } from '../services.ts'
import { readContents } from './contents.ts'
import { decodeInferRequest } from './server-codec.ts'

const PLENTY = { maxBytes: 2 ** 20 }
const { ModelInfer } = inferenceServices().objects

/** The encoded InferTensorContents of a request with one input. */
function contentsOf(contents: object): Uint8Array {
  const bytes = ModelInfer.requestSerialize({ inputs: [{ name: 'x', contents }] })
  const message = decodeInferRequest(bytes)
  return message.inputs[0]?.contents ?? new Uint8Array(0)
}

/** A packed list of varints or fixed numbers, or several bytes fields, one after the other. */
const lists: Readonly<
  Record<
    string,
    {
      readonly member: string
      readonly values: fc.Arbitrary<unknown[]>
      view(values: unknown[]): Uint8Array
    }
  >
> = {
  BOOL: {
    member: 'bool_contents',
    values: fc.array(fc.boolean()),
    view: (v) => Uint8Array.from(v.map(Number)),
  },
  INT32: {
    member: 'int_contents',
    values: fc.array(fc.integer()),
    view: (v) => bytesOf(Int32Array.from(v.map(Number))),
  },
  INT64: {
    member: 'int64_contents',
    values: fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String)),
    view: (v) => bytesOf(BigInt64Array.from(v.map((text) => BigInt(String(text))))),
  },
  UINT32: {
    member: 'uint_contents',
    values: fc.array(fc.nat(2 ** 31 - 1)),
    view: (v) => bytesOf(Uint32Array.from(v.map(Number))),
  },
  UINT64: {
    member: 'uint64_contents',
    values: fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String)),
    view: (v) => bytesOf(BigUint64Array.from(v.map((text) => BigInt(String(text))))),
  },
  FP32: {
    member: 'fp32_contents',
    values: fc.array(fc.float()),
    view: (v) => bytesOf(Float32Array.from(v.map(Number))),
  },
  FP64: {
    member: 'fp64_contents',
    values: fc.array(fc.double()),
    view: (v) => bytesOf(Float64Array.from(v.map(Number))),
  },
}

function bytesOf(view: { readonly buffer: ArrayBufferLike }): Uint8Array {
  return new Uint8Array(view.buffer)
}

await t.test('typed contents become raw bytes', async (t) => {
  for (const [name, list] of Object.entries(lists)) {
    if (!isDatatype(name)) continue
    fc.assert(
      fc.property(list.values, (values) => {
        const read = readContents(contentsOf({ [list.member]: values }), name, PLENTY)
        t.equal(read.kind, 'data')
        if (read.kind === 'data') t.strictSame([...read.data], [...list.view(values)], name)
      }),
      { numRuns: 50 },
    )
  }
})

await t.test('unpacked elements and unknown fields are read as protobuf says', async (t) => {
  // fp32_contents = 1.0 (unpacked), an unknown field 9, fp32_contents packed [2.0].
  const bytes = Buffer.concat([
    Buffer.from([0x35]),
    bytesOf(Float32Array.of(1)),
    Buffer.from([0x48, 7, 0x32, 4]),
    bytesOf(Float32Array.of(2)),
  ])
  const read = readContents(bytes, 'FP32', PLENTY)
  t.strictSame(read.kind === 'data' && [...read.data], [...bytesOf(Float32Array.of(1, 2))])
})

await t.test('every datatype takes exactly its own member', async (t) => {
  const members = {
    bool_contents: [true],
    int_contents: [1],
    int64_contents: ['1'],
    uint_contents: [1],
    uint64_contents: ['1'],
    fp32_contents: [1],
    fp64_contents: [1],
    bytes_contents: [Buffer.from('a')],
  }
  const fits: Readonly<Partial<Record<Datatype, string>>> = {
    BOOL: 'bool_contents',
    INT8: 'int_contents',
    INT16: 'int_contents',
    INT32: 'int_contents',
    INT64: 'int64_contents',
    UINT8: 'uint_contents',
    UINT16: 'uint_contents',
    UINT32: 'uint_contents',
    UINT64: 'uint64_contents',
    FP32: 'fp32_contents',
    FP64: 'fp64_contents',
    BYTES: 'bytes_contents',
  }
  for (const datatype of Object.keys(DATATYPES).filter(isDatatype)) {
    for (const [member, values] of Object.entries(members)) {
      const { kind } = readContents(contentsOf({ [member]: values }), datatype, PLENTY)
      t.equal(kind, fits[datatype] === member ? 'data' : 'mismatch', `${datatype} ${member}`)
    }
  }
  t.strictSame(readContents(contentsOf({ int_contents: [1] }), undefined, PLENTY), {
    kind: 'mismatch',
    found: 'INT32',
  })
  t.strictSame(
    readContents(contentsOf({ fp32_contents: [1], fp64_contents: [1] }), 'FP32', PLENTY),
    {
      kind: 'several',
    },
  )
})

await t.test('contents in many parts are put together once', (t) => {
  // Two bytes for an empty part. With a copy of all at each this takes long.
  const part = Buffer.concat([Buffer.of(0x2a, 0x80, 0x08), Buffer.alloc(1024)])
  const tensor = Buffer.concat([
    ...Array.from({ length: 15 }, () => part),
    ...Array.from({ length: 100_000 }, () => Buffer.of(0x2a, 0)),
  ])
  const head = Buffer.from([0x2a, ...lengthOf(tensor)])
  const [input] = decodeInferRequest(Buffer.concat([head, tensor])).inputs
  t.equal(input?.contents?.byteLength, 15 * 1024)
  t.end()
})

/** The length of a field, as a varint. */
function lengthOf({ byteLength }: Uint8Array): number[] {
  const bytes = []
  for (let rest = byteLength; rest > 0; rest >>= 7)
    bytes.push((rest & 127) | (rest > 127 ? 128 : 0))
  return bytes
}

await t.test('contents that grow beyond the bound are refused', async (t) => {
  const ones = contentsOf({ uint64_contents: Array.from({ length: 1000 }, () => '1') })
  t.ok(ones.byteLength < 1100)
  t.equal(readContents(ones, 'UINT64', { maxBytes: 8000 }).kind, 'data')
  t.throws(() => readContents(ones, 'UINT64', { maxBytes: 7999 }), {
    reason: 'MESSAGE_TOO_LARGE',
    message: 'tensor contents take 8000 bytes, want at most 7999',
  })
})

await t.test('very many elements are refused, packed numbers are cheap', async (t) => {
  const bounds = { maxBytes: 2 ** 30, maxElements: 1000 }
  // A packed field takes one itself.
  for (const [member, datatype, value, most] of [
    ['int_contents', 'INT32', 1, 9990],
    ['int64_contents', 'INT64', '-1', 999],
    ['bool_contents', 'BOOL', true, 9990],
    ['bytes_contents', 'BYTES', Buffer.alloc(0), 1000],
  ] as const) {
    const many = (count: number) =>
      contentsOf({ [member]: Array.from({ length: count }, () => value) })
    const read = readContents(many(most), datatype, bounds)
    t.match(read, { kind: 'data', elements: 1000 }, member)
    t.throws(
      () => readContents(many(most + 1), datatype, bounds),
      {
        reason: 'MESSAGE_TOO_LARGE',
        message: 'message has too many fields or typed elements; send tensors as raw contents',
      },
      member,
    )
  }
  for (const [member, datatype] of [
    ['fp32_contents', 'FP32'],
    ['fp64_contents', 'FP64'],
  ] as const) {
    const read = readContents(
      contentsOf({ [member]: Array.from({ length: 5000 }, (_, i) => i) }),
      datatype,
      bounds,
    )
    const bytes = (member === 'fp32_contents' ? 4 : 8) * 5000
    t.match(read, { kind: 'data', elements: 1 + Math.ceil(bytes / 128) })
  }
  const text = contentsOf({ bytes_contents: [Buffer.alloc(128 * 1000)] })
  t.throws(() => readContents(text, 'BYTES', bounds), { message: /too many fields/ })
  t.match(readContents(text, 'BYTES', { ...bounds, maxElements: 1001 }), { kind: 'data' })
  // int_contents = 1, each in a field of its own.
  const alone = Buffer.alloc(2 * 1001, Buffer.of(0x10, 1))
  t.equal(readContents(alone.subarray(2), 'INT32', bounds).kind, 'data')
  t.throws(() => readContents(alone, 'INT32', bounds), { message: /too many fields/ })
})

await t.test('narrow integers keep the low bytes of each value', async (t) => {
  const values = [1, 200, 300, 70_000, -1, -129]
  for (const [datatype, view] of [
    ['INT8', Int8Array.from(values)],
    ['INT16', Int16Array.from(values)],
  ] as const) {
    const read = readContents(contentsOf({ int_contents: values }), datatype, PLENTY)
    t.strictSame(read.kind === 'data' && [...read.data], [...bytesOf(view)], datatype)
  }
})

await t.test(
  'packed integers that end in the middle of one, or never, are malformed',
  async (t) => {
    for (const varint of [[0x80], [1, 0xff], [...Array.from({ length: 10 }, () => 0xff), 1]]) {
      const contents = Buffer.of(0x12, varint.length, ...varint)
      const message = /a varint at byte \d+ is cut short or too long/
      t.throws(() => readContents(contents, 'INT32', PLENTY), {
        reason: 'MALFORMED_MESSAGE',
        message,
      })
    }
    const ten = Buffer.of(0x1a, 10, ...Array.from({ length: 9 }, () => 0xff), 1)
    t.match(readContents(ten, 'INT64', PLENTY), { data: Buffer.alloc(8, 0xff) })
  },
)

await t.test('any bytes are read or refused as malformed', async (t) => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 100 }),
      fc.constantFrom(...Object.keys(DATATYPES)),
      (bytes, name) => {
        try {
          readContents(bytes, isDatatype(name) ? name : undefined, PLENTY)
        } catch (error) {
          t.ok(error instanceof ServeError && error.reason === 'MALFORMED_MESSAGE', String(error))
        }
      },
    ),
    { numRuns: 500 },
  )
})
