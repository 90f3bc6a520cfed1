// needs: openvino

import { env } from 'node:process'
import { createLogger } from '@tutti/chassis'
import t, { type Test } from 'tap'
import { ADD_CONFIG, addRequest, buildAddModel, writeModelFile } from '../testing/add-model.ts'
import { executeOnce, fp32Values } from '../testing/execute.ts'
import { modelSource } from '../testing/model-source.ts'
import { createOnnxEngine } from './onnx-engine.ts'

const LIBRARY = env['TUTTI_OPENVINO']
const WITHOUT = LIBRARY === undefined && (env['TUTTI_OPENVINO_MISSING'] ?? 'no TUTTI_OPENVINO')

/** Loads the model that adds; `strict` refuses a session that leaves an operator to the CPU's own provider. */
async function load(t: Test, name: string | undefined, parameters: Record<string, string> = {}) {
  const { directory, remove } = await writeModelFile(buildAddModel(2))
  t.teardown(remove)
  const lines: string[] = []
  const log = createLogger({ name: 'test', destination: { write: (line) => lines.push(line) } })
  const strict = { 'session.disable_cpu_ep_fallback': { string_value: '1' } }
  const accelerators = {
    gpu_execution_accelerator: [],
    cpu_execution_accelerator: name === undefined ? [] : [{ name, parameters }],
  }
  const config = {
    ...ADD_CONFIG,
    parameters: strict,
    optimization: { ...NOTHING, execution_accelerators: accelerators },
  }
  const engine = createOnnxEngine({ log, ...(LIBRARY !== undefined && { library: LIBRARY }) })
  const model = await engine.load(modelSource(directory, config), { instances: 2 })
  t.teardown(() => model.close())
  t.same(lines, [], 'nothing has no effect')
  return model
}

const NOTHING = {
  priority: 'PRIORITY_DEFAULT',
  gather_kernel_buffer_threshold: 0,
  eager_batching: false,
} as const

await t.test(
  'a wheel of ONNX Runtime executes models with OpenVINO',
  { skip: WITHOUT },
  async (t) => {
    const model = await load(t, 'openvino', { num_of_threads: '1' })
    for (const instance of [0, 1]) {
      const [response] = await executeOnce(model, [addRequest(2, instance)], instance)
      const sums = fp32Values(response, 'sum')
      t.equal(sums[0], 100 + instance)
      t.equal(sums.length, 4)
    }
  },
)

await t.test('its errors are told', { skip: WITHOUT }, async (t) => {
  await t.rejects(load(t, 'openvino', { speed: 'high' }), {
    reason: 'MODEL_LOAD_FAILED',
    message:
      /failed to load model 'm': by accelerator "openvino" of ONNX Runtime 1\.24\.1 \(device_type=CPU, speed=high\): ./,
  })
  await t.rejects(
    load(t, 'openvino', { device_type: 'NOWHERE' }),
    {
      message:
        /assigned to the default CPU EP, but fallback to CPU EP has been explicitly disabled/,
    },
    'what a device cannot execute is left to the CPU unless the model says otherwise',
  )
})
