import t from 'tap'
import { emptyModelConfig } from '../text/parse-model-config.ts'
import { selectBackend } from './select-backend.ts'

const BY_FILE: readonly (readonly [string, string, string])[] = [
  ['model.onnx', 'onnxruntime', 'onnxruntime_onnx'],
  ['model.pt', 'pytorch', 'pytorch_libtorch'],
  ['model.pt2', 'pytorch', 'torch_aoti'],
  ['model.py', 'python', ''],
  ['model.plan', 'tensorrt', 'tensorrt_plan'],
  ['model.xml', 'openvino', ''],
  ['model.graphdef', 'tensorflow', 'tensorflow_graphdef'],
  ['model.savedmodel', 'tensorflow', 'tensorflow_savedmodel'],
]

await t.test('the file in the version directory tells the backend', async (t) => {
  for (const [file, backend, platform] of BY_FILE) {
    const expected = { backend, platform, modelFilename: file }
    t.same(selectBackend(undefined, 'm', ['labels.txt', file]), expected, file)
    t.same(selectBackend(emptyModelConfig('m'), 'm', [file]), expected, file)
    const named = { ...emptyModelConfig('m'), default_model_filename: file }
    t.same(selectBackend(named, 'm', []), expected, `${file} as default_model_filename`)
  }
})

await t.test('either of platform and backend gives the other and the file', async (t) => {
  for (const [file, backend, platform] of BY_FILE) {
    const expected = { backend, platform, modelFilename: file }
    const config = { ...emptyModelConfig('m'), platform }
    if (platform !== '') t.same(selectBackend(config, 'm', []), expected, platform)
  }
  const cases = [
    { backend: 'onnxruntime', platform: 'onnxruntime_onnx', modelFilename: 'model.onnx' },
    { backend: 'pytorch', platform: 'pytorch_libtorch', modelFilename: 'model.pt' },
    { backend: 'python', platform: '', modelFilename: 'model.py' },
  ]
  for (const expected of cases) {
    const config = { ...emptyModelConfig('m'), backend: expected.backend }
    t.same(selectBackend(config, 'm', []), expected, expected.backend)
  }
})

await t.test('what the configuration gives stays as it is', async (t) => {
  const config = {
    ...emptyModelConfig('m'),
    backend: 'python',
    default_model_filename: 'main.py',
  }
  t.same(selectBackend(config, 'm', ['model.onnx']), {
    backend: 'python',
    platform: '',
    modelFilename: 'main.py',
  })
  const torch = { ...emptyModelConfig('m'), backend: 'pytorch' }
  t.equal(selectBackend(torch, 'm', ['model.pt2']).platform, 'torch_aoti')
  const own = { ...emptyModelConfig('m'), backend: 'mine', platform: 'anything' }
  t.same(selectBackend(own, 'm', ['model.onnx']), {
    backend: 'mine',
    platform: 'anything',
    modelFilename: '',
  })
})

await t.test('an ensemble has no backend', async (t) => {
  const config = { ...emptyModelConfig('e'), platform: 'ensemble' }
  t.same(selectBackend(config, 'e', []), { backend: '', platform: 'ensemble', modelFilename: '' })
})

await t.test('an unknown platform is left for validation to refuse', async (t) => {
  const config = { ...emptyModelConfig('m'), platform: 'caffe2_netdef' }
  t.equal(selectBackend(config, 'm', ['model.onnx']).backend, '')
})

await t.test('without any hint the directory name tells a custom backend', async (t) => {
  t.same(selectBackend(undefined, 'thing.identity', []), {
    backend: 'identity',
    platform: '',
    modelFilename: 'model.identity',
  })
  t.throws(() => selectBackend(undefined, 'thing', ['weights.bin']), {
    reason: 'CONFIG_INVALID',
    message:
      "Invalid model name: Could not determine backend for model 'thing' with no backend in model configuration. Expected model name of the form 'model.<backend_name>'.",
  })
})
