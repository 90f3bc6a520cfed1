import { copyFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { parseModelConfig } from '@tutti/model-config'
import { instanceGroup } from '@tutti/model-config/testing'
import t from 'tap'
import { ADD_CONFIG, buildAddModel, writeModelFile } from '../testing/add-model.ts'
import { modelConfig, modelSource } from '../testing/model-source.ts'
import { providerFile, readAccelerators } from './accelerators.ts'
import { cudaProviderProblem } from './cuda-provider.ts'
import { findOrtLibrary } from './find-ort-library.ts'
import { createOnnxEngine } from './onnx-engine.ts'
import { tooOld } from './ort-library.ts'

function read(text: string, usesGpu = true) {
  const { optimization } = parseModelConfig(
    `optimization { execution_accelerators { ${text} } }`,
    'config.pbtxt',
  )
  return readAccelerators(modelConfig([], [], { ...(optimization && { optimization }) }), usesGpu)
}

const parameter = (key: string, value: string) => `parameters { key: "${key}" value: "${value}" }`

await t.test('accelerators and their parameters are those of Triton', (t) => {
  const precisions = [
    ['FP32', {}],
    ['FP16', { trt_fp16_enable: '1' }],
    ['INT8', { trt_int8_enable: '1' }],
  ] as const
  for (const [precision, options] of precisions) {
    const text = `gpu_execution_accelerator { name: "tensorrt" ${parameter('precision_mode', precision)} }`
    t.same(read(text), { cpu: [], gpu: [{ name: 'tensorrt', options }] })
    t.same(read(text, false), { cpu: [], gpu: [] })
  }
  const more = `${parameter('max_workspace_size_bytes', '1024')} ${parameter('trt_timing_cache_enable', '1')}`
  const openvino = `cpu_execution_accelerator { name: "openvino" ${parameter('num_of_threads', '2')} }`
  const ofCpu = { name: 'openvino', options: { device_type: 'CPU', num_of_threads: '2' } }
  const options = { trt_max_workspace_size: '1024', trt_timing_cache_enable: '1' }
  t.same(read(`gpu_execution_accelerator { name: "tensorrt" ${more} } ${openvino}`), {
    cpu: [ofCpu],
    gpu: [{ name: 'tensorrt', options }],
  })
  t.end()
})

await t.test('what is not known is refused', (t) => {
  const refused = [
    ['cpu_execution_accelerator { name: "tensorrt" }', /"tensorrt" is not offered, want openvino /],
    ['gpu_execution_accelerator { name: "toString" }', /"toString" is not offered, want tensorrt /],
    [
      `gpu_execution_accelerator { name: "tensorrt" ${parameter('precision_mode', 'FP8')} }`,
      /parameters\["precision_mode"\].*got "FP8", want FP32, FP16 or INT8/,
    ],
    [
      `gpu_execution_accelerator { name: "tensorrt" ${parameter('precision', 'FP16')} }`,
      /parameters\["precision"\].*want precision_mode/,
    ],
  ] as const
  for (const [text, message] of refused) t.throws(() => read(text), { message })
  t.end()
})

await t.test('a folder gives its library; the version that is too old is told', (t) => {
  const folder = t.testdir({
    'libonnxruntime.so': '',
    'libonnxruntime.so.1': '',
    'libonnxruntime.so.1.24.1': '',
    'libonnxruntime.so.1.9.0': '',
    'libonnxruntime_providers_x.so': '',
  })
  if (process.platform === 'linux')
    t.equal(findOrtLibrary(folder), join(folder, 'libonnxruntime.so.1.24.1'))
  t.equal(findOrtLibrary(join(folder, 'other.so')), join(folder, 'other.so'))
  t.equal(findOrtLibrary(t.testdir({})).startsWith(t.testdirName), true)
  t.match(tooOld('1.19.2'), /ONNX Runtime 1\.19\.2, .* want 1\.24\.0 or newer/)
  t.end()
})

await t.test(
  'a provider whose libraries do not load is told with the file and the version',
  async (t) => {
    const folder = t.testdir({})
    const library = findOrtLibrary()
    copyFileSync(library, join(folder, basename(library)))
    t.match(cudaProviderProblem(folder), /has no CUDA provider: .*providers_shared/)
    for (const name of ['shared', 'cuda', 'tensorrt']) {
      writeFileSync(join(folder, providerFile(name)), '')
    }
    t.equal(cudaProviderProblem(folder), undefined)
    const { optimization } = parseModelConfig(
      'optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }',
      'config.pbtxt',
    )
    const config = {
      ...ADD_CONFIG,
      ...(optimization && { optimization }),
      instance_group: [instanceGroup({ kind: 'KIND_GPU', count: 1, gpus: [0] })],
    }
    const { directory, remove } = await writeModelFile(buildAddModel(2))
    t.teardown(remove)
    const engine = createOnnxEngine({ library: folder })
    await t.rejects(engine.load(modelSource(directory, config), { instances: 1 }), {
      reason: 'MODEL_LOAD_FAILED',
      message:
        /by accelerator "tensorrt" of ONNX Runtime 1\.\d+\.\d+: .*libonnxruntime_providers_shared\.so.*file too short/s,
    })
  },
)
