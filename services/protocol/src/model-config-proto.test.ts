// needs: python
import { execFileSync } from 'node:child_process'
import { env } from 'node:process'
import { loadSync } from '@grpc/proto-loader'
import { parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import { modelConfigToProto } from './model-config-proto.ts'
import { inferenceServices, PROTO_OPTIONS } from './services.ts'

const PYTHON = env['TUTTI_TEST_PYTHON']

const TEXT = `
name: "m" platform: "onnxruntime_onnx" backend: "onnxruntime" max_batch_size: 8
version_policy { specific { versions: [ 1, 9007199254740991 ] } }
input { name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, -1, 2 ] optional: true reshape { shape: [ 6 ] } }
output { name: "y" data_type: TYPE_STRING dims: [ 1 ] label_filename: "l.txt" }
instance_group { count: 2 kind: KIND_CPU rate_limiter { resources { name: "r" global: true count: 3 } priority: 1 } }
dynamic_batching {
  preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 priority_levels: 2
  priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 5 } }
  priority_queue_policy { key: 4294967297 value { max_queue_size: 7 } }
}
optimization { graph { level: -1 } execution_accelerators { cpu_execution_accelerator { name: "openvino" parameters { key: "a" value: "b" } } } }
parameters { key: "k" value { string_value: "v" } }
model_warmup { name: "w" batch_size: 1 inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 6 ] zero_data: true } } }
metric_tags { key: "t" value: "u" }
model_transaction_policy { decoupled: true }
response_cache { enable: false }
model_metrics { metric_control { metric_identifier { family: "f" } histogram_options { buckets: [ 0.5, 1 ] } } }
`

const ENSEMBLE = `
name: "e" platform: "ensemble"
ensemble_scheduling {
  step { model_name: "a" model_version: -1 input_map { key: "x" value: "t" } output_map { key: "y" value: "u" } }
  max_inflight_requests: 3
}
`

const { ModelConfig } = inferenceServices().objects

function encode(text: string): Buffer {
  const config = modelConfigToProto(parseModelConfig(text, 'config.pbtxt'))
  return ModelConfig.responseSerialize({ config })
}

await t.test('a configuration keeps every field, and which member of a oneof is set', async (t) => {
  const { config } = ModelConfig.responseDeserialize(encode(TEXT))
  t.match(config, {
    name: 'm',
    max_batch_size: 8,
    version_policy: {
      policy_choice: 'specific',
      specific: { versions: ['1', '9007199254740991'] },
    },
    input: [
      { data_type: 'TYPE_FP32', format: 'FORMAT_NCHW', dims: ['3', '-1', '2'], optional: true },
    ],
    scheduling_choice: 'dynamic_batching',
    model_warmup: [{ inputs: { x: { input_data_type: 'zero_data', zero_data: true } } }],
    response_cache: { enable: false },
  })
  t.notOk(config?.model_operations, 'messages that are absent stay absent')
  const ensemble = ModelConfig.responseDeserialize(encode(ENSEMBLE)).config
  t.match(ensemble, {
    scheduling_choice: 'ensemble_scheduling',
    ensemble_scheduling: { step: [{ model_version: '-1', input_map: { x: 't' } }] },
  })
})

const skip = PYTHON === undefined && 'tritonclient is not installed (TUTTI_TEST_PYTHON is not set)'

await t.test(
  'protobuf reads the encoded configuration as it reads the text',
  { skip },
  async (t) => {
    const script = `
import json, sys
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2, service_pb2
for case in json.load(sys.stdin):
    wanted = text_format.Parse(case["text"], model_config_pb2.ModelConfig())
    got = service_pb2.ModelConfigResponse.FromString(bytes.fromhex(case["hex"])).config
    # Nothing that has its default, which a client of an older protocol would not know.
    isShort = len(bytes.fromhex(case["hex"])) == len(service_pb2.ModelConfigResponse(config=wanted).SerializeToString())
    print("same" if got == wanted and isShort else f"{got}\\n--- wanted\\n{wanted}")
`
    const cases = [TEXT, ENSEMBLE].map((text) => ({ text, hex: encode(text).toString('hex') }))
    const input = JSON.stringify(cases)
    const output = execFileSync(PYTHON ?? '', ['-c', script], { encoding: 'utf8', input })
    t.equal(output, 'same\nsame\n')
  },
)

await t.test('the protos load with the same options again', async (t) => {
  t.ok(loadSync('grpc_service.proto', PROTO_OPTIONS)['inference.ModelInferRequest'])
})
