import t from 'tap'
import { FACE_ENSEMBLE, OCR_DETECTION } from '../testing/published-configs.ts'
import { emptyModelConfig, parseModelConfig } from '../text/parse-model-config.ts'
import { isDecoupled, isEnsembleConfig, modelMetadata } from './model-metadata.ts'

const parse = (text: string) => parseModelConfig(text, 'config.pbtxt')

await t.test('a batching model shows a leading -1', async (t) => {
  t.same(modelMetadata(parse(OCR_DETECTION), [1, 12]), {
    name: 'text_detection',
    versions: ['1', '12'],
    platform: 'onnxruntime_onnx',
    inputs: [{ name: 'input_images:0', datatype: 'FP32', shape: [-1, -1, -1, 3] }],
    outputs: [
      { name: 'feature_fusion/Conv_7/Sigmoid:0', datatype: 'FP32', shape: [-1, -1, -1, 1] },
      { name: 'feature_fusion/concat_3:0', datatype: 'FP32', shape: [-1, -1, -1, 5] },
    ],
  })
})

await t.test('a model without batching shows its dims, not its reshape', async (t) => {
  const face = modelMetadata(parse(FACE_ENSEMBLE), [])
  t.same(face.inputs[0]?.shape, [-1, -1, 3])
  t.equal(face.platform, 'ensemble')
  const config = parse(
    'input { name: "s" data_type: TYPE_STRING dims: 4 reshape { shape: [2, 2] } }',
  )
  t.same(modelMetadata(config, []).inputs, [{ name: 's', datatype: 'BYTES', shape: [4] }])
})

await t.test('without a platform the backend is shown, without a type <invalid>', async (t) => {
  const config = parse('backend: "python" output { name: "o" dims: 1 }')
  const metadata = modelMetadata(config, [])
  t.equal(metadata.platform, 'python')
  t.equal(metadata.outputs[0]?.datatype, '<invalid>')
})

await t.test('an ensemble is told by its scheduler or its platform', async (t) => {
  t.ok(isEnsembleConfig(parse('ensemble_scheduling {}')))
  t.ok(isEnsembleConfig(parse('platform: "ensemble"')))
  t.notOk(isEnsembleConfig(emptyModelConfig('ensemble')))
})

await t.test('decoupled is what the transaction policy says', async (t) => {
  t.ok(isDecoupled(parse('model_transaction_policy { decoupled: true }')))
  t.notOk(isDecoupled(parse('model_transaction_policy { }')))
  t.notOk(isDecoupled(emptyModelConfig('m')))
})
