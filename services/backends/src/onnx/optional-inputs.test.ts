import { ServeError } from '@tutti/errors'
import { type Datatype, decodeBytesTensor } from '@tutti/tensor'
import * as fc from 'fast-check'
import t from 'tap'
import { buildOnnx, type InitializerSpec } from '../testing/onnx-writer.ts'
import { writeBytes, writeNumber, writeVarint } from '../testing/wire-fields.ts'
import { inspectOnnx } from './inspect.ts'
import { joinBytes } from './model-fields.ts'
import { openInputs } from './optional-inputs.ts'

function scaleModel(scale: Omit<InitializerSpec, 'name'>): Uint8Array {
  return buildOnnx({
    inputs: [
      { name: 'x', type: 'FP32', dims: [1] },
      { name: 'scale', type: scale.type, dims: [...scale.dims] },
    ],
    outputs: [{ name: 'y', type: 'FP32', dims: [1] }],
    operators: [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }],
    initializers: [
      { name: 'scale', ...scale },
      { name: 'weight', type: 'FP32', dims: [1], data: new Uint8Array(4) },
    ],
  })
}

/** A model that is nothing but one TensorProto named `scale`. */
function tensorModel(dataType: number, dims: readonly number[], data: Uint8Array): Uint8Array {
  const tensor = joinBytes([
    ...dims.map((dim) => writeNumber(1, dim)),
    writeNumber(2, dataType),
    writeBytes(8, 'scale'),
    data,
  ])
  return writeBytes(7, writeBytes(5, tensor))
}

const SCALE = new Set(['scale'])

await t.test('an opened input is a true input, and its default is returned', async (t) => {
  const data = new Uint8Array(Float32Array.of(2.5).buffer)
  const { model, defaults } = openInputs(
    Buffer.from(scaleModel({ type: 'FP32', dims: [1], data })),
    SCALE,
  )
  t.match(defaults, [{ name: 'scale', datatype: 'FP32', dims: [1] }])
  t.same(defaults[0]?.data, data)
  const found = await inspectOnnx(model)
  t.same(
    found.inputs.map(({ name }) => name),
    ['x', 'scale'],
  )
  t.same(found.overridable, [])
})

const packedField = (field: number, ...values: (number | bigint)[]) =>
  writeBytes(field, joinBytes(values.map(writeVarint)))

await t.test('defaults are read from each place that ONNX has for them', async (t) => {
  const cases: {
    type: number
    data: Uint8Array
    datatype: Datatype
    bytes: ArrayBufferView
  }[] = [
    {
      type: 1,
      data: writeBytes(4, new Uint8Array(Float32Array.of(1, -2).buffer)),
      datatype: 'FP32',
      bytes: Float32Array.of(1, -2),
    },
    {
      type: 11,
      data: writeBytes(10, new Uint8Array(Float64Array.of(1, -2).buffer)),
      datatype: 'FP64',
      bytes: Float64Array.of(1, -2),
    },
    { type: 3, data: packedField(5, 1, -2), datatype: 'INT8', bytes: Int8Array.of(1, -2) },
    { type: 9, data: packedField(5, 1, 0), datatype: 'BOOL', bytes: Uint8Array.of(1, 0) },
    {
      type: 10,
      data: packedField(5, 0x3c00, 1),
      datatype: 'FP16',
      bytes: Uint16Array.of(0x3c00, 1),
    },
    { type: 7, data: packedField(7, 1, -2), datatype: 'INT64', bytes: BigInt64Array.of(1n, -2n) },
    {
      type: 13,
      data: joinBytes([writeNumber(11, 7), writeNumber(11, 2n ** 63n)]),
      datatype: 'UINT64',
      bytes: BigUint64Array.of(7n, 2n ** 63n),
    },
  ]
  for (const { type, data, datatype, bytes } of cases) {
    const [tensor] = openInputs(tensorModel(type, [2], data), SCALE).defaults
    t.equal(tensor?.datatype, datatype)
    t.same([...(tensor?.data ?? [])], [...new Uint8Array(bytes.buffer)], datatype)
  }
  const strings = joinBytes([writeBytes(6, 'a'), writeBytes(6, '')])
  const [text] = openInputs(tensorModel(8, [2], strings), SCALE).defaults
  t.same(
    decodeBytesTensor(text?.data ?? new Uint8Array()).map((e) => Buffer.from(e).toString()),
    ['a', ''],
  )
})

const rawField = (size: number) => writeBytes(9, new Uint8Array(size))

await t.test('a default that cannot be read is MODEL_LOAD_FAILED', async (t) => {
  const cases = [
    { model: tensorModel(1, [2], rawField(4)), text: '1 elements, want 2' },
    { model: tensorModel(16, [1], rawField(2)), text: 'element type 16' },
    {
      model: tensorModel(1, [1], writeNumber(14, 1)),
      text: 'it is external data',
    },
    { model: writeBytes(7, new Uint8Array(0)), text: 'has no default' },
  ]
  for (const { model, text } of cases) {
    t.throws(() => openInputs(model, SCALE), {
      reason: 'MODEL_LOAD_FAILED',
      message: new RegExp(text),
    })
  }
})

await t.test('mutated models are opened or refused, never anything else', async (t) => {
  const base = scaleModel({ type: 'INT32', dims: [2], data: new Uint8Array(8) })
  fc.assert(
    fc.property(fc.nat(base.byteLength - 1), fc.nat(255), (at, value) => {
      const bytes = base.slice()
      bytes[at] = value
      try {
        openInputs(bytes, SCALE)
      } catch (error) {
        if (!(error instanceof ServeError) || error.reason !== 'MODEL_LOAD_FAILED') throw error
      }
    }),
    { numRuns: 500 },
  )
  t.pass('held for every mutation tried')
})
