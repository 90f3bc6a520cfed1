import type { ModelConfig } from '@tutti/model-config'
import t from 'tap'
import type { OnnxPort } from '../onnx/model-ports.ts'
import { fp32Declared } from '../testing/add-model.ts'
import { modelConfig } from '../testing/model-source.ts'
import { checkConfig } from './config-check.ts'

function port(name: string, dims: readonly number[] | null, optional = false): OnnxPort {
  return { name, datatype: 'FP32', dims, optional }
}

const PORTS = { inputs: [port('x', [-1, 3])], outputs: [port('y', [-1, -1])] }
const x = fp32Declared('x', [3])
const y = fp32Declared('y', [4])

await t.test('configurations that the model can serve pass', async (t) => {
  const cases: { config: ModelConfig; inputs?: OnnxPort[]; outputs?: OnnxPort[] }[] = [
    { config: modelConfig([x], [y], { max_batch_size: 4 }) },
    { config: modelConfig([fp32Declared('x', [2, 3])], [fp32Declared('y', [-1, 1])]) },
    {
      config: modelConfig([x], [fp32Declared('y', [7, 8, 9])]),
      inputs: [port('x', null)],
      outputs: [port('y', null)],
    },
    {
      config: modelConfig([fp32Declared('x', [1])], [fp32Declared('y', [1])]),
      inputs: [port('x', [])],
      outputs: [port('y', [])],
    },
    {
      config: modelConfig([{ ...x, dims: [1], reshape: [] }], [y], { max_batch_size: 4 }),
      inputs: [port('x', [-1])],
    },
    { config: modelConfig([x], [], { max_batch_size: 4 }) },
    {
      config: modelConfig(
        [fp32Declared('x', [1, 3]), { ...fp32Declared('s', [1]), optional: true }],
        [],
      ),
      inputs: [...PORTS.inputs, port('s', [1], true), port('unused', [1], true)],
    },
  ]
  for (const { config, inputs, outputs } of cases) {
    checkConfig(config, { inputs: inputs ?? PORTS.inputs, outputs: outputs ?? PORTS.outputs })
  }
  t.pass('none was refused')
})

await t.test('what the model cannot serve is refused with the text of Triton', async (t) => {
  const batching = { max_batch_size: 4 }
  const cases: { config: ModelConfig; text: string; inputs?: OnnxPort[] }[] = [
    {
      config: modelConfig([x, { ...x, name: 'z' }], [y], batching),
      text: "unable to load model 'm', configuration expects 2 inputs, model provides 1",
    },
    {
      config: modelConfig([{ ...x, name: 'z' }], [y], batching),
      text: "unexpected inference input 'z', allowed inputs are: x",
    },
    {
      config: modelConfig([x], [{ ...y, name: 'z' }], batching),
      text: "unexpected inference output 'z', allowed outputs are: y",
    },
    {
      config: modelConfig([{ ...x, type: 'TYPE_STRING' }], [y], batching),
      text: "unable to load model 'm', configuration expects datatype TYPE_STRING for input 'x', model provides TYPE_FP32",
    },
    {
      config: modelConfig([{ ...x, dims: [3, 1] }], [y], batching),
      text: "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,3,1])",
    },
    {
      config: modelConfig([{ ...x, dims: [-1] }], [y], batching),
      text: "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 2 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,-1])",
    },
    {
      config: modelConfig([x], [y]),
      text: "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 1 dimensions (shape [3])",
    },
    {
      config: modelConfig([x], [y], batching),
      inputs: [port('x', [1, 3])],
      text: "model 'm', tensor 'x': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [1,3]",
    },
    {
      config: modelConfig([{ ...x, optional: true }], [y], batching),
      text: "'optional' is set to true for input 'x' while the backend model doesn't support optional input",
    },
    {
      config: modelConfig([x, { ...fp32Declared('s', [1]), optional: true }], [y], batching),
      inputs: [...PORTS.inputs, port('s', [-1, 1], true)],
      text: "'optional' is set to true for input 's' while the backend model doesn't support optional input",
    },
  ]
  for (const { config, text, inputs } of cases) {
    t.throws(() => checkConfig(config, { ...PORTS, inputs: inputs ?? PORTS.inputs }), {
      reason: 'MODEL_LOAD_FAILED',
      code: 'INVALID_ARGUMENT',
      message: text,
    })
  }
})
