import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildOnnx, type OnnxSpec, writeBytes } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { inspectOnnx } from './inspect.ts'
import { isBatchable, toPorts, toSignature } from './model-ports.ts'

const IDENTITY = [{ op: 'Identity', inputs: ['x'], outputs: ['y'] }]

function model(spec: Partial<OnnxSpec> = {}): Uint8Array<ArrayBuffer> {
  return buildOnnx({
    inputs: [{ name: 'x', type: 'FP32', dims: ['N', 3] }],
    outputs: [{ name: 'y', type: 'FP32', dims: ['N', 3] }],
    operators: IDENTITY,
    ...spec,
  })
}

await t.test('names, types and extents come from the graph', async (t) => {
  const found = await inspectOnnx(
    model({
      inputs: [{ name: 'x', type: 'INT64', dims: ['N', 3, ''] }],
      outputs: [
        { name: 'scalar', type: 'BOOL', dims: [] },
        { name: 'unranked', type: 'BYTES', dims: null },
      ],
    }),
  )
  t.same(found.inputs, [{ name: 'x', kind: 'tensor', elementType: 7, dims: [-1, 3, -1] }])
  t.same(found.outputs, [
    { name: 'scalar', kind: 'tensor', elementType: 9, dims: [] },
    { name: 'unranked', kind: 'tensor', elementType: 8, dims: null },
  ])
})

await t.test('a model is batchable if every first dimension is free', async (t) => {
  const cases = [
    { dims: ['N', 3], batchable: true },
    { dims: ['N'], batchable: true },
    { dims: [1, 3], batchable: false },
    { dims: [], batchable: false },
    { dims: null, batchable: false },
  ]
  for (const { dims, batchable } of cases) {
    const outputs = [{ name: 'y', type: 'FP32' as const, dims }]
    const signature = toSignature(toPorts(await inspectOnnx(model({ outputs }))))
    t.equal(isBatchable(signature), batchable, JSON.stringify(dims))
  }
})

await t.test('an input with an initializer is optional, and none of the signature', async (t) => {
  const data = new Uint8Array(4)
  const found = await inspectOnnx(
    model({
      inputs: [
        { name: 'x', type: 'FP32', dims: [1] },
        { name: 'scale', type: 'FP32', dims: [1] },
      ],
      initializers: [
        { name: 'scale', type: 'FP32', dims: [1], data },
        { name: 'weight', type: 'FP32', dims: [1], data },
      ],
    }),
  )
  t.same(
    found.inputs.map(({ name }) => name),
    ['x'],
  )
  t.same(
    toPorts(found).inputs.map(({ name, optional }) => ({ name, optional })),
    [
      { name: 'x', optional: false },
      { name: 'scale', optional: true },
    ],
  )
  t.same(toSignature(toPorts(found)).inputs, [{ name: 'x', datatype: 'FP32', dims: [1] }])
})

await t.test('a file is read without its weights', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tutti-inspect-'))
  t.teardown(() => rm(directory, { recursive: true }))
  const path = join(directory, 'model.onnx')
  const weight = { name: 'w', type: 'FP32' as const, dims: [200_000] }
  const big = model({ initializers: [{ ...weight, data: new Uint8Array(800_000) }] })
  await writeFile(path, big)
  t.same(await inspectOnnx(path), await inspectOnnx(big))
})

await t.test('types that cannot be served are refused by tensor and type', async (t) => {
  const cases = [
    { value: { type: 22 }, text: 'tensor(element type 22)' },
    { value: { type: 14 }, text: 'tensor(complex64)' },
    { value: { type: 99 }, text: 'tensor(element type 99)' },
    { value: { type: 1, kind: 'sequence' as const }, text: 'sequence' },
    { value: { type: 1, kind: 'optional' as const }, text: 'optional' },
  ]
  for (const { value, text } of cases) {
    const found = await inspectOnnx(model({ inputs: [{ name: 'x', dims: [1], ...value }] }))
    t.throws(() => toPorts(found), {
      reason: 'MODEL_LOAD_FAILED',
      code: 'INVALID_ARGUMENT',
      message: new RegExp(`^model input 'x' is of type ${text.replaceAll(/[()]/g, '\\$&')}, which`),
    })
  }
})

const graphField = (bytes: Uint8Array) => writeBytes(7, bytes)

await t.test('what is no model is MODEL_LOAD_FAILED', async (t) => {
  const cases = [
    { bytes: new Uint8Array(0), text: 'it has no graph' },
    { bytes: graphField(new Uint8Array(0)), text: 'its graph has no outputs' },
    { bytes: new TextEncoder().encode('not a model at all'), text: 'wire type' },
    { bytes: Uint8Array.of(0x3a, 0x7f), text: 'passes the end of its message by' },
    { bytes: new Uint8Array(30).fill(0xff), text: 'longer than 10 bytes' },
    { bytes: Uint8Array.of(0x3a), text: 'a varint is cut short' },
    { bytes: Uint8Array.of(0x00, 0x01), text: '0 is no field number' },
    {
      bytes: graphField(writeBytes(12, writeBytes(1, Uint8Array.of(0xff)))),
      text: 'is not UTF-8',
    },
    { bytes: graphField(writeBytes(12, new Uint8Array(0))), text: 'has no name' },
    {
      bytes: graphField(Buffer.concat([1, 2].map(() => writeBytes(12, writeBytes(1, 'y'))))),
      text: "two outputs are named 'y'",
    },
    {
      bytes: graphField(writeBytes(11, new Uint8Array(1024 * 1024 + 1))),
      text: 'an input has 1048577 bytes',
    },
  ]
  for (const { bytes, text } of cases) {
    await t.rejects(inspectOnnx(bytes), {
      reason: 'MODEL_LOAD_FAILED',
      message: new RegExp(text),
    })
  }
  await t.rejects(inspectOnnx('/nonexistent/model.onnx'), {
    name: 'ServeError',
    reason: 'MODEL_LOAD_FAILED',
  })
  await t.rejects(inspectOnnx(tmpdir()), {
    name: 'ServeError',
    reason: 'MODEL_LOAD_FAILED',
  })
})

await t.test('mutated models are read or refused, never anything else', async (t) => {
  const base = model({
    initializers: [{ name: 'w', type: 'FP32', dims: [2], data: new Uint8Array(8) }],
  })
  const mutation = fc.record({ at: fc.nat(base.byteLength - 1), value: fc.nat(255) })
  await fc.assert(
    fc.asyncProperty(
      fc.array(mutation, { minLength: 1, maxLength: 6 }),
      fc.nat(base.byteLength),
      async (mutations, cut) => {
        const bytes = base.slice(0, cut === 0 ? base.byteLength : cut)
        for (const { at, value } of mutations) if (at < bytes.byteLength) bytes[at] = value
        try {
          toPorts(await inspectOnnx(bytes))
        } catch (error) {
          if (!(error instanceof ServeError) || error.reason !== 'MODEL_LOAD_FAILED') throw error
        }
      },
    ),
    { numRuns: 500 },
  )
  t.pass('held for every mutation tried')
})
