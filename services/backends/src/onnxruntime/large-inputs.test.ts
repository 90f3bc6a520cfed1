import { buildOnnx } from '@tutti/builtins'
import { encodeBytesTensor } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { fp32Declared, identitySpec, writeModelFile } from '../testing/add-model.ts'
import { executeOnce, fp32Values } from '../testing/execute.ts'
import { modelConfig, modelSource, stepRequest } from '../testing/model-source.ts'
import { createOnnxEngine } from './onnx-engine.ts'

async function writeModel(t: Test, bytes: Uint8Array): Promise<string> {
  const { directory, remove } = await writeModelFile(bytes)
  t.teardown(remove)
  return directory
}

await t.test('an input has at most so many strings', async (t) => {
  const directory = await writeModel(t, buildOnnx(identitySpec('BYTES', ['N'])))
  const tensor = { name: 'x', type: 'TYPE_STRING' as const, dims: [-1] }
  const config = modelConfig([tensor], [{ ...tensor, name: 'y' }])
  const engine = createOnnxEngine({ maxStrings: 2 })
  const model = await engine.load(modelSource(directory, config), { instances: 1 })
  t.teardown(() => model.close())
  const execute = async (...texts: string[]) => {
    const data = encodeBytesTensor(texts.map((text) => Buffer.from(text)))
    const input = { name: 'x', datatype: 'BYTES', shape: [texts.length], data } as const
    const [response] = await executeOnce(model, [stepRequest([input])])
    return response
  }
  t.equal((await execute('a', 'b'))?.error, undefined)
  t.match((await execute('a', 'b', 'c'))?.error, {
    reason: 'MESSAGE_TOO_LARGE',
    code: 'RESOURCE_EXHAUSTED',
    message:
      "input 'x' of model 'm': 3 strings, want at most 2 (--backend-config=onnxruntime,max-strings=N)",
  })
})

function floats(count: number) {
  const data = new Uint8Array(4 * count).fill(0)
  return stepRequest([{ name: 'x', datatype: 'FP32', shape: [count], data }])
}

await t.test('a run of large inputs leaves its memory to others', async (t) => {
  const bytes = buildOnnx({
    inputs: [{ name: 'x', type: 'FP32', dims: ['N'] }],
    outputs: [{ name: 'y', type: 'FP32', dims: [1] }],
    operators: [
      { op: 'Sqrt', inputs: ['x'], outputs: ['a'] },
      { op: 'ReduceSum', inputs: ['a'], outputs: ['y'] },
    ],
  })
  const directory = await writeModel(t, bytes)
  const [small, large] = [floats(1000), floats(2 ** 24)]
  for (const arena of ['1', '0']) {
    const config = modelConfig([fp32Declared('x', [-1])], [fp32Declared('y', [1])], {
      parameters: { enable_mem_arena: { string_value: arena } },
    })
    const source = modelSource(directory, config)
    const model = await createOnnxEngine().load(source, { instances: 1 })
    t.teardown(() => model.close())
    // An arena keeps what it has first.
    await executeOnce(model, [small])
    const before = process.memoryUsage.rss()
    const [response] = await executeOnce(model, [large])
    t.same(fp32Values(response, 'y'), [0])
    const kept = process.memoryUsage.rss() - before
    t.ok(kept < 2 ** 25, `${kept} bytes`)
    await executeOnce(model, [small])
  }
})
