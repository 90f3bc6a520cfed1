import t from 'tap'
import { normaliseModelConfig } from '../complete/normalise-model-config.ts'
import { parseModelConfig } from '../text/parse-model-config.ts'
import { toJsonConfig } from './to-json-config.ts'

await t.test('a config is shown as the /config endpoint shows it', async (t) => {
  const config = parseModelConfig(
    `name: "simple" platform: "onnxruntime_onnx" backend: "onnxruntime" max_batch_size: 8
     default_model_filename: "model.onnx"
     input { name: "INPUT0" data_type: TYPE_INT32 dims: 16 }
     output { name: "OUTPUT0" data_type: TYPE_INT32 dims: 16 reshape { shape: [4, 4] } }
     instance_group { count: 1 kind: KIND_CPU }`,
    'config.pbtxt',
  )
  t.equal(
    JSON.stringify(toJsonConfig(normaliseModelConfig(config))),
    '{"name":"simple","platform":"onnxruntime_onnx","backend":"onnxruntime","runtime":"","version_policy":{"latest":{"num_versions":1}},"max_batch_size":8,"input":[{"name":"INPUT0","data_type":"TYPE_INT32","format":"FORMAT_NONE","dims":[16],"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],"output":[{"name":"OUTPUT0","data_type":"TYPE_INT32","dims":[16],"reshape":{"shape":[4,4]},"label_filename":"","is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},"instance_group":[{"name":"simple_0","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],"default_model_filename":"model.onnx","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[]}',
  )
})

await t.test('a field that a Triton 2.51 does not have is shown only if it is set', async (t) => {
  for (const [field, shown] of [
    ['', '"ensemble_scheduling":{"step":[]}'],
    ['max_inflight_requests: 3', '"max_inflight_requests":3'],
  ] as const) {
    const config = parseModelConfig(`ensemble_scheduling { ${field} }`, 'c')
    t.match(JSON.stringify(toJsonConfig(config)), shown)
  }
})

await t.test('64-bit integers are numbers, and what JSON cannot say is text', async (t) => {
  const config = parseModelConfig(
    `dynamic_batching { max_queue_delay_microseconds: 9007199254740991 }
     model_metrics { metric_control { histogram_options { buckets: [1.5, inf, -inf, nan] } } }`,
    'config.pbtxt',
  )
  const json = JSON.stringify(toJsonConfig(config))
  t.match(json, '"max_queue_delay_microseconds":9007199254740991')
  t.match(json, '"buckets":[1.5,"Infinity","-Infinity","NaN"]')
})

await t.test('the result is a copy', async (t) => {
  const config = parseModelConfig('input { dims: [1] }', 'config.pbtxt')
  const { input } = toJsonConfig(config)
  t.not(input, config.input)
})
