import { setImmediate as nextTurn } from 'node:timers/promises'
import { buildOnnx } from '@tutti/builtins'
import type { StepResponse } from '@tutti/tensor'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import { buildAddModel, fp32Declared, identitySpec, writeModelFile } from '../testing/add-model.ts'
import { fp32Tensor } from '../testing/execute.ts'
import { modelConfig, modelSource, stepRequest } from '../testing/model-source.ts'
import { createOnnxEngine } from './onnx-engine.ts'

const WIDTH = 32_768

async function load(t: Test, parameters = {}): Promise<LoadedModel> {
  const { directory, remove } = await writeModelFile(buildAddModel(WIDTH))
  t.teardown(remove)
  const declared = ['a', 'b'].map((name) => fp32Declared(name, [WIDTH]))
  const config = modelConfig(declared, [fp32Declared('sum', [WIDTH])], {
    max_batch_size: 4,
    parameters,
  })
  const model = await createOnnxEngine().load(modelSource(directory, config), { instances: 1 })
  t.teardown(() => model.close())
  return model
}

const requestOf = (value: number) => {
  const row = Array.from({ length: WIDTH }, () => value)
  const inputs = ['a', 'b'].map((name) => fp32Tensor(name, [1, WIDTH], row))
  return stepRequest(inputs, { batchSize: 1 })
}

interface Kept {
  readonly data: Uint8Array
  readonly giveBack: () => void
}

function fail(error: Error): void {
  throw error
}

/** Executes requests together, and retains their responses. */
async function keep(model: LoadedModel, ...values: readonly number[]): Promise<Kept[]> {
  const kept: Kept[] = []
  const send = ({ outputs, retain }: StepResponse): void => {
    const [output] = outputs
    if (output === undefined || retain === undefined) throw new Error('nothing is lent')
    kept.push({ data: output.data, giveBack: retain() })
  }
  const batch = values.map((value) => ({ request: requestOf(value), sink: { send, fail } }))
  const { signal } = new AbortController()
  await model.execute(batch, { instance: 0, signal })
  return kept
}

/** The value that all elements have. */
function valueOf({ data }: Kept): number {
  const values = new Float32Array(data.buffer, data.byteOffset, data.byteLength / 4)
  return values.every((one) => one === values[0]) ? (values[0] ?? Number.NaN) : Number.NaN
}

await t.test('large outputs are lent until all who retained them gave them back', async (t) => {
  const model = await load(t)
  const [first] = await keep(model, 1)
  const [second] = await keep(model, 2)
  const [third, fourth] = await keep(model, 3, 4)
  const all = [first, second, third, fourth].flatMap((one) => one ?? [])
  t.same(all.map(valueOf), [2, 4, 6, 8])
  const place = first?.data.byteOffset
  first?.giveBack()
  first?.giveBack()
  const [fifth] = await keep(model, 5)
  t.equal(fifth?.data.buffer, first?.data.buffer, 'the memory is used again, and its view')
  t.equal(fifth?.data.byteOffset, place)
  t.same(all.slice(1).map(valueOf), [4, 6, 8])
  third?.giveBack()
  const [sixth] = await keep(model, 6)
  t.same(all.slice(3).map(valueOf), [8], 'the other request of the batch still has its part')
  for (const one of [second, fourth, fifth, sixth]) one?.giveBack()
})

await t.test('lent outputs outlive their model', async (t) => {
  const model = await load(t)
  const [kept] = await keep(model, 7)
  await model.close()
  t.equal(kept && valueOf(kept), 14)
  kept?.giveBack()
})

await t.test('many are lent at once, with an arena and without', async (t) => {
  for (const enable_mem_arena of ['1', '0']) {
    const model = await load(t, { enable_mem_arena: { string_value: enable_mem_arena } })
    for (let round = 0; round < 3; round += 1) {
      const values = Array.from({ length: 80 }, (_, i) => round * 100 + i)
      const kept = await Promise.all(values.map((value) => keep(model, value)))
      await nextTurn()
      t.same(
        kept.flat().map(valueOf),
        values.map((value) => 2 * value),
      )
      for (const one of kept.flat()) one.giveBack()
    }
  }
})

await t.test('an output that is an input is copied, as its memory is the request’s', async (t) => {
  const spec = identitySpec('FP32', ['N', WIDTH])
  const { directory, remove } = await writeModelFile(
    buildOnnx({ ...spec, outputs: [...spec.inputs, ...spec.outputs] }),
  )
  t.teardown(remove)
  const x = fp32Declared('x', [-1, WIDTH])
  const config = modelConfig([x], [x, fp32Declared('y', [-1, WIDTH])])
  const model = await createOnnxEngine().load(modelSource(directory, config), { instances: 1 })
  t.teardown(() => model.close())
  const input = fp32Tensor('x', [1, WIDTH], Array(WIDTH).fill(3))
  const given: (() => void)[] = []
  const outputs: Uint8Array[] = []
  const send = ({ outputs: sent, retain }: StepResponse): void => {
    given.push(retain?.() ?? (() => {}))
    for (const { data } of sent) outputs.push(data)
  }
  const batch = [{ request: stepRequest([input]), sink: { send, fail } }]
  await model.execute(batch, { instance: 0, signal: new AbortController().signal })
  const wanted = Buffer.from(input.data)
  // The request is answered, and its memory is another's.
  input.data.fill(0xee)
  t.same(
    outputs.map((data) => wanted.equals(data)),
    [true, true],
  )
  for (const giveBack of given) giveBack()
})
