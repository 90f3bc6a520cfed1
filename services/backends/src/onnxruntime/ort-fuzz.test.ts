import { buildOnnx, type OnnxSpec } from '@tutti/builtins'
import {
  DATATYPES,
  type Datatype,
  decodeBytesTensor,
  elementCount,
  encodeBytesTensor,
  isDatatype,
  type NamedTensor,
} from '@tutti/tensor'
import { RecordedResponses } from '@tutti/tensor/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import { identitySpec, writeModelFile } from '../testing/add-model.ts'
import { executeOnce, fp32Tensor, fp32Values } from '../testing/execute.ts'
import { modelConfig, modelSource, stepRequest } from '../testing/model-source.ts'
import { createOnnxEngine } from './onnx-engine.ts'

/*
 * Whatever a request says, it is answered or refused: a wrong address or size would end this process. The step's own checks
 * are left out.
 */

function toDeclared({ name, type }: OnnxSpec['inputs'][number], dims: readonly number[]) {
  if (typeof type === 'number') throw new Error('declared by its datatype')
  return { name, type: DATATYPES[type].config, dims }
}

async function load(t: Test, spec: OnnxSpec, batch = 0): Promise<LoadedModel> {
  const { directory, remove } = await writeModelFile(buildOnnx(spec))
  t.teardown(remove)
  const dims = batch > 0 ? [-1] : [-1, -1]
  const config = modelConfig(
    spec.inputs.map((one) => toDeclared(one, dims)),
    spec.outputs.map((one) => toDeclared(one, dims)),
    { max_batch_size: batch },
  )
  const model = await createOnnxEngine().load(modelSource(directory, config), { instances: 1 })
  t.teardown(() => model.close())
  return model
}

const NAMES = Object.keys(DATATYPES).filter(isDatatype)

const extent = fc.oneof(
  { weight: 6, arbitrary: fc.nat(4) },
  fc.constantFrom(2 ** 31, 2 ** 40, 2 ** 53 - 1, 2 ** 62, -1, -(2 ** 40), 0.5, Number.NaN),
)
const shape = fc.array(extent, { maxLength: 4 })
const wellShaped = fc.array(fc.nat(4), { minLength: 2, maxLength: 2 })

/** Bytes at any place of their buffer, of a size that fits a shape or of another. */
function tensorOf(name: string, datatype: Datatype): fc.Arbitrary<NamedTensor> {
  const { itemSize } = DATATYPES[datatype]
  return fc
    .record({
      dims: fc.oneof({ weight: 3, arbitrary: wellShaped }, shape),
      seed: fc.nat(255),
      offset: fc.nat(9),
      extra: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.integer({ min: -9, max: 9 })),
      isShared: fc.boolean(),
    })
    .map(({ dims, seed, offset, extra, isShared }) => {
      const count = elementCount(dims)
      const known = Number.isSafeInteger(count) && count >= 0 && count <= 256 ? count : 3
      const texts = Array.from({ length: known }, (_, i) => new Uint8Array(i % 5).fill(seed & 1))
      const content =
        itemSize === null ? encodeBytesTensor(texts) : new Uint8Array(known * itemSize)
      if (itemSize !== null) content.fill(datatype === 'BOOL' ? seed & 1 : seed)
      const size = Math.max(0, content.byteLength + extra)
      const memory = isShared
        ? new SharedArrayBuffer(offset + size)
        : new ArrayBuffer(offset + size)
      const data = new Uint8Array(memory, offset, size)
      data.set(content.subarray(0, size))
      return { name, datatype, shape: dims, data }
    })
}

function isWhole(datatype: Datatype, { shape: dims, data }: NamedTensor): boolean {
  const count = elementCount(dims)
  const { itemSize } = DATATYPES[datatype]
  if (!dims.every((one) => Number.isSafeInteger(one) && one >= 0)) return false
  if (itemSize !== null) return data.byteLength === count * itemSize
  try {
    return decodeBytesTensor(data).length === count
  } catch {
    return false
  }
}

await t.test('requests of any shape, size and place are answered or refused', async (t) => {
  for (const datatype of NAMES) {
    const model = await load(t, identitySpec(datatype, ['N', 'M']))
    await fc.assert(
      fc.asyncProperty(tensorOf('x', datatype), async (tensor) => {
        const [response] = await executeOnce(model, [stepRequest([tensor])])
        const output = response?.outputs[0]
        const isServed = tensor.shape.length === 2 && isWhole(datatype, tensor)
        if (output === undefined) {
          const reason = response?.error?.reason ?? ''
          if (isServed || !/^(INVALID_TENSOR_DATA|INCOMPLETE|ENGINE_FAILED)/.test(reason)) {
            throw new Error(`${datatype} ${JSON.stringify(tensor.shape)}: ${reason}`)
          }
        } else if (!isServed || !Buffer.from(output.data).equals(Buffer.from(tensor.data))) {
          throw new Error(`${datatype} ${JSON.stringify(tensor.shape)}: answered otherwise`)
        }
      }),
      { numRuns: 60 },
    )
  }
  t.pass('held for every request tried')
})

const ADD: OnnxSpec = {
  inputs: ['a', 'b'].map((name) => ({ name, type: 'FP32', dims: ['N', 'M'] })),
  outputs: [{ name: 'sum', type: 'FP32', dims: ['N', 'M'] }],
  operators: [{ op: 'Add', inputs: ['a', 'b'], outputs: ['sum'] }],
}

await t.test('requests with any inputs and outputs share batches', async (t) => {
  const model = await load(t, ADD, 64)
  const input = fc.oneof(
    ...['a', 'b', 'c'].map((name) => fc.constantFrom(...NAMES).chain((d) => tensorOf(name, d))),
    ...['a', 'b', 'a', 'b'].map((name) => tensorOf(name, 'FP32')),
  )
  const request = fc
    .record({
      inputs: fc.array(input, { maxLength: 4 }),
      batchSize: fc.nat(4),
      requestedOutputs: fc.subarray(['sum', 'absent', '']),
    })
    .map(({ inputs, ...rest }) => stepRequest(inputs, rest))
  const good = stepRequest([fp32Tensor('a', [1, 2], [1, 2]), fp32Tensor('b', [1, 2], [3, 4])], {
    batchSize: 1,
  })
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 4 }), async (requests) => {
      await executeOnce(model, requests)
      const [response] = await executeOnce(model, [good])
      return fp32Values(response, 'sum').join(',') === '4,6'
    }),
    { numRuns: 150 },
  )
  t.pass('held for every batch tried')
})

await t.test('numbers that may be places in a tensor are copied, and masks', async (t) => {
  for (const datatype of ['BOOL', 'INT32', 'INT64'] as const) {
    const model = await load(t, identitySpec(datatype, ['N', 'M']))
    const shape = [100_000, 1]
    const data = new Uint8Array(100_000 * DATATYPES[datatype].itemSize)
    const sink = new RecordedResponses()
    const request = stepRequest([{ name: 'x', datatype, shape, data }])
    const { signal } = new AbortController()
    const run = model.execute([{ request, sink }], { instance: 0, signal })
    data.fill(1)
    await run
    const isAsItWas = sink.responses[0]?.outputs[0]?.data.every((byte) => byte === 0)
    t.ok(isAsItWas, datatype)
  }
})
