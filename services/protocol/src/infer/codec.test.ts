import { ServeError } from '@tutti/errors'
import { DATATYPES, type Datatype, type NamedTensor, type Parameter } from '@tutti/tensor'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { inferenceServices } from '../services.ts'
import { decodeInferResponse, decodeStreamResponse, encodeInferRequest } from './client-codec.ts'
import type { WireParameters } from './infer-message.ts'
import { decodeInferRequest, encodeInferResponseFrame } from './server-codec.ts'
import { encodeStreamResponseFrame } from './stream-frame.ts'

/** Takes the message behind the header of a frame that is not compressed. */
function messageOf(frame: Buffer): Buffer {
  if (frame[0] !== 0 || frame.readUInt32BE(1) !== frame.byteLength - 5) throw new Error('no frame')
  return frame.subarray(5)
}

const { ModelInfer, ModelStreamInfer } = inferenceServices().objects

// proto-loader is the other implementation that ours must agree with; its message types are loose on purpose.
type Loose = Record<string, unknown>
const encodeRequestObject = (value: Loose) => ModelInfer.requestSerialize(value)
const decodeRequestObject = (bytes: Buffer) => ModelInfer.requestDeserialize(bytes)
const encodeResponseObject = (value: Loose) => ModelInfer.responseSerialize(value)
const decodeResponseObject = (bytes: Buffer) => ModelInfer.responseDeserialize(bytes)

const text = fc.string({ unit: 'binary', maxLength: 40 })
const shape = fc.array(
  fc.oneof(
    fc.integer({ min: -1, max: 300 }),
    fc.integer({ min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }),
  ),
  { maxLength: 6 },
)
const parameter: fc.Arbitrary<Parameter> = fc.oneof(
  fc.boolean().map((value) => ({ kind: 'bool', value }) as const),
  fc
    .bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
    .map((value) => ({ kind: 'int64', value }) as const),
  text.map((value) => ({ kind: 'string', value }) as const),
  fc.double({ noNaN: true }).map((value) => ({ kind: 'double', value }) as const),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => ({ kind: 'uint64', value }) as const),
)
// protobufjs keeps maps as objects, in which __proto__ is not a key.
const key = text.filter((name) => name !== '__proto__')
const parameters = fc.array(fc.tuple(key, parameter), { maxLength: 4 }).map((list) => new Map(list))
const datatype = fc.constantFrom(...(Object.keys(DATATYPES) as Datatype[]))
const tensor: fc.Arbitrary<NamedTensor> = fc.record({
  name: text,
  datatype,
  shape,
  data: fc.uint8Array({ maxLength: 200 }),
})
const tensors = fc.array(tensor, { maxLength: 4 })

function toObject(map: WireParameters): Loose {
  return Object.fromEntries(
    [...map].map(([name, value]) => [
      name,
      value === undefined
        ? {}
        : {
            [`${value.kind}_param`]:
              typeof value.value === 'bigint' ? String(value.value) : value.value,
          },
    ]),
  )
}

function withChoice(object: Loose): Loose {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [
      name,
      { ...(value as Loose), parameter_choice: Object.keys(value as Loose)[0] },
    ]),
  )
}

const varint = (bytes: number) => Buffer.alloc(bytes, 0xff)
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

await t.test('an encoded request reads back the same with proto-loader', async (t) => {
  fc.assert(
    fc.property(
      text,
      text,
      text,
      parameters,
      tensors,
      fc.array(text, { maxLength: 3 }),
      (modelName, modelVersion, id, params, inputs, names) => {
        const bytes = encodeInferRequest({
          modelName,
          modelVersion,
          id,
          parameters: params,
          inputs,
          outputs: names.map((name) => ({ name, parameters: params })),
        })
        const object = decodeRequestObject(bytes)
        t.strictSame(plain({ ...object, raw_input_contents: object.raw_input_contents.map(hex) }), {
          model_name: modelName,
          model_version: modelVersion,
          id,
          parameters: plain(withChoice(toObject(params))),
          inputs: inputs.map((input) => ({
            name: input.name,
            datatype: input.datatype,
            shape: input.shape.map(String),
            parameters: {},
            contents: null,
          })),
          outputs: names.map((name) => ({ name, parameters: plain(withChoice(toObject(params))) })),
          raw_input_contents: inputs.map(({ data }) => hex(data)),
        })
      },
    ),
    { numRuns: 200 },
  )
})

await t.test('a request of proto-loader decodes to the same message', async (t) => {
  fc.assert(
    fc.property(text, parameters, tensors, (name, params, inputs) => {
      const bytes = encodeRequestObject({
        model_name: name,
        model_version: name,
        id: name,
        parameters: toObject(params),
        inputs: inputs.map((input) => ({ ...input, parameters: toObject(params) })),
        outputs: [{ name, parameters: toObject(params) }],
        raw_input_contents: inputs.map(({ data }) => data),
      })
      const message = decodeInferRequest(bytes)
      t.equal(message.modelName, name)
      t.equal(message.modelVersion, name)
      t.equal(message.id, name)
      t.strictSame([...message.parameters], [...params])
      t.strictSame(
        message.inputs.map((input) => [
          input.name,
          input.datatype,
          input.shape,
          [...input.parameters],
        ]),
        inputs.map((input) => [input.name, input.datatype, input.shape, [...params]]),
      )
      t.strictSame(
        message.outputs.map((output) => [...output.parameters]),
        [[...params]],
      )
      t.strictSame(
        message.rawInputContents.map(hex),
        inputs.map(({ data }) => hex(data)),
      )
      for (const view of message.rawInputContents)
        t.equal(view.buffer, bytes.buffer, 'a view, not a copy')
    }),
    { numRuns: 200 },
  )
})

await t.test('raw bytes are read beside the empty contents that MLServer sends', (t) => {
  const raw = Buffer.from([1, 2, 3, 4])
  const output = { name: 'o', datatype: 'INT32', shape: ['1'], contents: {} }
  const bytes = encodeResponseObject({ outputs: [output], raw_output_contents: [raw] })
  t.same(decodeInferResponse(bytes).outputs[0]?.data, raw)
  t.end()
})

await t.test('responses agree with proto-loader both ways', async (t) => {
  fc.assert(
    fc.property(text, parameters, tensors, (name, params, outputs) => {
      const response = { modelName: name, modelVersion: '1', id: name, parameters: params, outputs }
      const object = decodeResponseObject(messageOf(encodeInferResponseFrame(response)))
      t.equal(object.model_name, name)
      t.strictSame(plain(object.parameters), plain(withChoice(toObject(params))))
      t.strictSame(
        object.raw_output_contents.map(hex),
        outputs.map(({ data }) => hex(data)),
      )
      t.strictSame(
        object.outputs.map(({ shape }) => shape),
        outputs.map(({ shape }) => shape.map(String)),
      )
      const back = decodeInferResponse(encodeResponseObject(object as unknown as Loose))
      t.strictSame([...back.parameters], [...params])
      t.strictSame(
        back.outputs.map(({ data, ...rest }) => ({ ...rest, data: hex(data) })),
        outputs.map(({ data, ...rest }) => ({ ...rest, data: hex(data) })),
      )
      const message = decodeStreamResponse(
        messageOf(encodeStreamResponseFrame({ errorMessage: name, response })),
      )
      t.equal(message.errorMessage, name)
      t.equal(message.response?.outputs.length, outputs.length)
      const seen = ModelStreamInfer.responseDeserialize(
        messageOf(encodeStreamResponseFrame({ errorMessage: name, response })),
      )
      t.equal(seen.infer_response?.raw_output_contents.length, outputs.length)
    }),
    { numRuns: 200 },
  )
  t.strictSame(decodeStreamResponse(messageOf(encodeStreamResponseFrame({ errorMessage: 'no' }))), {
    errorMessage: 'no',
  })
})

/** Runs a decoder on any bytes: it must return or throw one of its two reasons, nothing else. */
function onlyTypedErrors(t: Test, decode: (bytes: Uint8Array) => unknown, bytes: Uint8Array): void {
  try {
    decode(bytes)
  } catch (error) {
    t.ok(error instanceof ServeError, String(error))
    if (error instanceof ServeError)
      t.match(error.reason, /^(MALFORMED_MESSAGE|MESSAGE_TOO_LARGE)$/)
  }
}

await t.test('any bytes decode or are refused with a reason', async (t) => {
  const valid = encodeInferRequest({
    modelName: 'm',
    id: 'é',
    parameters: new Map([['p', { kind: 'double', value: 1 }]]),
    inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 2], data: new Uint8Array(8) }],
    outputs: [{ name: 'y' }],
  })
  for (const decode of [decodeInferRequest, decodeInferResponse, decodeStreamResponse]) {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => onlyTypedErrors(t, decode, bytes)),
      { numRuns: 500 },
    )
    fc.assert(
      fc.property(fc.nat(valid.length - 1), fc.nat(255), fc.nat(valid.length), (at, value, end) => {
        const bytes = Buffer.from(valid)
        bytes[at] = value
        onlyTypedErrors(t, decode, bytes)
        onlyTypedErrors(t, decode, bytes.subarray(0, end))
      }),
      { numRuns: 500 },
    )
  }
})

await t.test('malformed messages say what is wrong', async (t) => {
  const cases: readonly (readonly [string, readonly number[], RegExp])[] = [
    ['a cut varint', [0x18, ...varint(2)], /cut short/],
    ['an overlong varint', [0x18, ...varint(11)], /longer than 10 bytes/],
    ['a length beyond the end', [0x0a, 5, 1], /want 5 bytes at byte 2, got 1/],
    ['a nested length beyond the end', [0x2a, 3, 0x0a, 9, 1], /want 9 bytes/],
    ['a length over 2^31', [0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f], /over 2\^31/],
    ['field number zero', [0x00], /no field number/],
    ['a wire type that does not exist', [0x0f], /wire type 7 of field 1/],
    ['an end without a group', [0x0c], /wire type 4 of field 1/],
    ['a group ended as another', [0x83, 1, 0x8c, 1], /group 16 is ended as 17/],
    ['too deep groups', Array.from({ length: 200 }, () => [0x83, 1]).flat(), /nested deeper/],
    ['a name that is not UTF-8', [0x0a, 2, 0xc3, 0x28], /not UTF-8/],
    ['a cut fixed64', [0x09, 1, 2], /want 8 bytes/],
    ['a cut fixed32', [0x0d, 1, 2], /want 4 bytes/],
  ]
  for (const [name, bytes, wanted] of cases) {
    t.throws(
      () => decodeInferRequest(Uint8Array.from(bytes)),
      { reason: 'MALFORMED_MESSAGE', message: wanted },
      name,
    )
  }
  t.throws(() => decodeInferResponse(Uint8Array.from([0x2a, 3, 0x0a, 1, 0x78])), {
    reason: 'MALFORMED_MESSAGE',
    message: /datatype ''/,
  })
})

await t.test('an extent beyond 2^53 is refused by the name of its tensor', async (t) => {
  const name = [0x0a, 1, 0x78]
  const most = [...varint(8), 0x7f]
  const least = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]
  const cases: readonly (readonly [string, readonly number[]])[] = [
    ['packed', [...name, 0x1a, 10, 1, ...most]],
    ['not packed', [...name, 0x18, ...most, 0x18, 1]],
    ['before the name', [0x18, ...least, ...name]],
  ]
  for (const [layout, input] of cases) {
    t.throws(
      () => decodeInferRequest(Uint8Array.from([0x2a, input.length, ...input])),
      {
        reason: 'INVALID_REQUEST',
        code: 'INVALID_ARGUMENT',
        message: "shape of tensor 'x' has an extent out of range, want 0 to 2^53 - 1",
        details: { field: 'x.shape' },
      },
      layout,
    )
  }
})

await t.test('unknown fields and unpacked shapes are read as protobuf says', async (t) => {
  const input = [0x0a, 1, 0x78, 0x18, 2, 0x18, 3, 0x1a, 2, 4, 5, 0xa3, 1, 8, 1, 0xa4, 1]
  const message = decodeInferRequest(
    Uint8Array.from([
      0x0a,
      1,
      0x61,
      0x0a,
      1,
      0x6d,
      0x7d,
      0,
      0,
      0,
      0,
      0x2a,
      input.length,
      ...input,
      0x08,
      7,
    ]),
  )
  t.equal(message.modelName, 'm', 'the last of a scalar field wins')
  t.strictSame(
    message.inputs.map(({ name, shape }) => ({ name, shape })),
    [{ name: 'x', shape: [2, 3, 4, 5] }],
  )
})

await t.test(
  'a parameter without a value is kept as such in requests and refused in responses',
  async (t) => {
    const entry = [0x22, 3, 0x0a, 1, 0x6b]
    t.strictSame([...decodeInferRequest(Uint8Array.from(entry)).parameters], [['k', undefined]])
    t.throws(() => decodeInferResponse(Uint8Array.from(entry)), {
      reason: 'MALFORMED_MESSAGE',
      message: /no value/,
    })
  },
)

await t.test('more entries than MESSAGE_BOUNDS are refused', async (t) => {
  const inNested = (bytes: Buffer) => Buffer.concat([Buffer.from([0x2a]), lengthOf(bytes), bytes])
  const cases: readonly (readonly [string, Uint8Array])[] = [
    ['inputs', many(0x2a, 4097)],
    ['outputs', many(0x32, 4097)],
    ['rawContents', many(0x3a, 4097)],
    [
      'rank',
      inNested(
        Buffer.concat([Buffer.from([0x1a]), lengthOf(Buffer.alloc(1025)), Buffer.alloc(1025)]),
      ),
    ],
  ]
  for (const [what, bytes] of cases) {
    t.throws(
      () => decodeInferRequest(bytes),
      { reason: 'MESSAGE_TOO_LARGE', message: new RegExp(what) },
      what,
    )
  }
})

function many(tag: number, count: number): Buffer {
  return Buffer.concat(Array.from({ length: count }, () => Buffer.from([tag, 0])))
}

function lengthOf(bytes: Uint8Array): Buffer {
  const length = bytes.byteLength
  return Buffer.from(length < 128 ? [length] : [(length & 0x7f) | 0x80, length >> 7])
}
