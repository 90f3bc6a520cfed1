import { ServeError } from '@tutti/errors'
import * as fc from 'fast-check'
import t from 'tap'
import { buildOnnx } from '../testing/onnx-writer.ts'
import { writeBytes, writeNumber } from '../testing/wire-fields.ts'
import { inspectOnnx } from './inspect.ts'
import { openInputs, toDefaults } from './optional-inputs.ts'

const data = new Uint8Array(4)
const MODEL = buildOnnx({
  inputs: [
    { name: 'x', type: 'FP32', dims: [1] },
    { name: 'scale', type: 'FP32', dims: [1] },
    { name: 'other', type: 'FP32', dims: [1] },
  ],
  outputs: [{ name: 'y', type: 'FP32', dims: [1] }],
  operators: [{ op: 'Mul', inputs: ['x', 'scale'], outputs: ['y'] }],
  initializers: ['weight', 'scale', 'other'].map((name) => ({
    name,
    type: 'FP32',
    dims: [1],
    data,
  })),
})
const SCALE = new Set(['scale'])

async function namesOf(model: Uint8Array) {
  const { inputs, overridable, outputs } = await inspectOnnx(model)
  const [required, optional, results] = [inputs, overridable, outputs].map((values) =>
    values.map(({ name }) => name),
  )
  return { required, optional, results }
}

await t.test('an opened input is a true input, and the others stay as they are', async (t) => {
  const before = MODEL.slice()
  const opened = openInputs(Buffer.from(MODEL), SCALE)
  t.same(await namesOf(opened), { required: ['x', 'scale'], optional: ['other'], results: ['y'] })
  t.same(MODEL, before, 'the model itself is not changed')
})

await t.test('a model of the defaults has them as its outputs and nothing else', async (t) => {
  t.same(await namesOf(toDefaults(MODEL, SCALE)), {
    required: [],
    optional: [],
    results: ['scale'],
  })
})

await t.test('fields that the rewriting does not know are kept', async (t) => {
  const graph = Buffer.concat([
    writeBytes(16, writeBytes(1, 'key')),
    writeNumber(30, 7),
    writeBytes(5, writeBytes(8, 'scale')),
  ])
  const model = Buffer.concat([writeNumber(1, 8), writeBytes(7, graph), writeBytes(2, 'producer')])
  const opened = openInputs(model, SCALE)
  const changed = [...opened.keys()].filter((i) => opened[i] !== model[i])
  t.same(changed, [model.indexOf(writeBytes(5, writeBytes(8, 'scale')))])
})

await t.test('mutated models are rewritten or refused, never anything else', async (t) => {
  fc.assert(
    fc.property(fc.nat(MODEL.byteLength - 1), fc.nat(255), (at, value) => {
      const bytes = MODEL.slice()
      bytes[at] = value
      try {
        openInputs(bytes, SCALE)
        toDefaults(bytes, SCALE)
      } catch (error) {
        if (!(error instanceof ServeError) || error.reason !== 'MALFORMED_MESSAGE') throw error
      }
    }),
    { numRuns: 500 },
  )
  t.pass('held for every mutation tried')
})
