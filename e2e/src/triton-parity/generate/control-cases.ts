import type { Random } from '../../attacks/random.ts'
import type { Call, Case } from '../case.ts'

type Files = Record<string, string>

const IDENTITY = `import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("Y", pb_utils.get_input_tensor_by_name(request, "X").as_numpy())]
            )
            for request in requests
        ]
`
const TENSORS = `input { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }
output { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }
`
const PYTHON = `backend: "python"\n${TENSORS}`

function python(name: string, config: string, model = IDENTITY, version = '1'): Files {
  return { [`${name}/config.pbtxt`]: config, [`${name}/${version}/model.py`]: model }
}

/** Fields that may stand in a configuration beside the tensors, right or wrong. */
const FIELDS = [
  'max_batch_size: 4',
  'max_batch_size: -1',
  'max_batch_size: 4 dynamic_batching { }',
  'max_batch_size: 4 dynamic_batching { preferred_batch_size: [ 8 ] }',
  'max_batch_size: 4 dynamic_batching { preferred_batch_size: [ 0 ] }',
  'max_batch_size: 4 dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 100 }',
  'max_batch_size: 4 dynamic_batching { priority_levels: 2 }',
  'max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 3 }',
  'max_batch_size: 4 dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }',
  'dynamic_batching { }',
  'version_policy { latest { num_versions: 2 } }',
  'version_policy { all { } }',
  'version_policy { specific { versions: [ 1 ] } }',
  'version_policy { specific { versions: [ 7 ] } }',
  'version_policy { latest { num_versions: 0 } }',
  'instance_group { count: 2 kind: KIND_CPU }',
  'instance_group { count: 0 }',
  'instance_group { kind: KIND_GPU }',
  'instance_group { kind: KIND_MODEL }',
  'instance_group { kind: KIND_CPU gpus: [ 0 ] }',
  'instance_group [ { name: "a" count: 1 }, { name: "b" count: 1 } ]',
  'model_warmup { name: "w" inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } }',
  'model_warmup { name: "w" batch_size: 1 inputs { key: "X" value { data_type: TYPE_FP32 dims: [ 3 ] zero_data: true } } }',
  'model_warmup { name: "w" batch_size: 1 inputs { key: "Z" value { data_type: TYPE_FP32 dims: [ 2 ] zero_data: true } } }',
  'parameters { key: "k" value { string_value: "v" } }',
  'metric_tags { key: "t" value: "u" }',
  'optimization { priority: PRIORITY_MAX }',
  'model_transaction_policy { decoupled: true }',
  'response_cache { enable: true }',
  'default_model_filename: "model.py"',
  'platform: "ensemble"',
  'platform: "python"',
  'name: "another"',
  'runtime: "python"',
  'nonsense: 5',
  'max_batch_size: "x"',
  'input { name: "X" data_type: TYPE_FP32 dims: [ 2 ] }',
  'input { name: "W" data_type: TYPE_FP32 dims: [ 0 ] }',
  'input { name: "W" data_type: TYPE_FP32 dims: [ ] }',
  'input { name: "W" data_type: TYPE_FP32 dims: [ -2 ] }',
  'input { name: "W" data_type: TYPE_INVALID dims: [ 2 ] }',
  'input { name: "W" dims: [ 2 ] }',
  'input { data_type: TYPE_FP32 dims: [ 2 ] }',
  'input { name: "W" data_type: TYPE_FP32 dims: [ 2 ] optional: true }',
  'input { name: "W" data_type: TYPE_FP32 dims: [ 2, 2 ] format: FORMAT_NHWC }',
  'input { name: "W" data_type: TYPE_FP32 dims: [ 2 ] reshape { shape: [ 3 ] } optional: true }',
  'input { name: "W" data_type: TYPE_FP32 dims: [ 2 ] reshape { shape: [ 1, 2 ] } optional: true }',
  'output { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] }',
  'output { name: "Z" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "absent.txt" }',
  'output { name: "Z" data_type: TYPE_FP32 dims: [ ] }',
] as const

function configured(name: string, { oneOf }: Random): Files {
  return python(name, `${PYTHON}${oneOf(FIELDS)}\n`)
}

/** Code of models that may do wrong when it is loaded. */
const CODES = [
  'import nothing_of_this_name\n',
  'def broken(:\n',
  'x = 1\n',
  'class TritonPythonModel:\n    pass\n',
  `${IDENTITY}\n    def initialize(self, args):\n        raise ValueError("not today")\n`,
  `${IDENTITY}\n    def finalize(self):\n        raise ValueError("not at the end")\n`,
  `${IDENTITY}\n    @staticmethod\n    def auto_complete_config(config):\n        raise ValueError("no idea")\n`,
  `${IDENTITY}\n    @staticmethod\n    def auto_complete_config(config):\n        return 5\n`,
  `${IDENTITY}\n    @staticmethod\n    def auto_complete_config(config):\n        config.set_max_batch_size(8)\n        return config\n`,
  `${IDENTITY}\n    @staticmethod\n    def auto_complete_config(config):\n        config.add_input({"name": "X", "data_type": "TYPE_INT32", "dims": [2]})\n        return config\n`,
] as const

function ensemble(o: { name: string; body: string; step: string }): Files {
  return {
    [`${o.name}/config.pbtxt`]: `platform: "ensemble"\n${o.body}ensemble_scheduling { ${o.step} }\n`,
    [`${o.name}/1/note`]: '',
  }
}

function stepOf(model: string, input = 'X', output = 'Y', version = '-1'): string {
  return `step { model_name: "${model}" model_version: ${version} input_map { key: "${input}" value: "X" } output_map { key: "${output}" value: "Y" } }`
}

/** An ensemble of one step, whose description may be wrong. */
function composed(name: string, step: string, { oneOf }: Random): Files {
  const right = stepOf(step)
  const [body, steps] = oneOf([
    [TENSORS, right],
    [TENSORS, right],
    [TENSORS, stepOf('absent')],
    [TENSORS, stepOf(step, 'Z')],
    [TENSORS, stepOf(step, 'X', 'Z')],
    [TENSORS, stepOf(step, 'X', 'Y', '7')],
    [TENSORS, right.replace('model_version: -1 ', '')],
    [TENSORS, `${right} ${right}`],
    [TENSORS, right.replace('value: "Y"', 'value: "W"')],
    [TENSORS, right.replace('value: "X"', 'value: "W"')],
    [TENSORS, stepOf(name)],
    [TENSORS, ''],
    [`max_batch_size: 8\n${TENSORS}`, right],
    [`backend: "python"\n${TENSORS}`, right],
    [`instance_group { count: 1 }\n${TENSORS}`, right],
    [TENSORS.replace('TYPE_FP32', 'TYPE_INT32'), right],
    [TENSORS.replace('dims: [ 2 ]', 'dims: [ 3 ]'), right],
    [TENSORS.replace('dims: [ 2 ]', 'dims: [ -1 ]'), right],
    [`model_transaction_policy { decoupled: true }\n${TENSORS}`, right],
    [TENSORS, right.replace('input_map { key: "X" value: "X" }', '')],
  ] as const)
  return ensemble({ name, body, step: steps })
}

const OVERRIDES = [
  '{}',
  '{',
  '[]',
  '5',
  '',
  '{"backend":"python"}',
  '{"backend":"python","max_batch_size":2,"input":[{"name":"X","data_type":"TYPE_FP32","dims":[2]}],"output":[{"name":"Y","data_type":"TYPE_FP32","dims":[2]}]}',
  '{"backend":"python","input":[{"name":"X","data_type":"TYPE_FP32","dims":["2"]}],"output":[{"name":"Y","data_type":"TYPE_FP32","dims":[2]}]}',
  '{"backend":"python","input":[{"name":"X","dataType":"TYPE_FP32","dims":[2]}],"output":[{"name":"Y","data_type":11,"dims":[2]}]}',
  '{"backend":"python","nonsense":1}',
  '{"backend":5}',
  '{"backend":"nope"}',
  '{"platform":"nope"}',
] as const

/** Parameters of a load, as gRPC and as REST have them. */
function loadParameters({ oneOf }: Random): readonly [Record<string, unknown>, unknown] {
  const text = oneOf(OVERRIDES)
  const file = Buffer.from(IDENTITY).toString('base64')
  return oneOf([
    [{}, undefined],
    [{ config: { string_param: text } }, { config: text }],
    [{ config: { string_param: text } }, { config: text }],
    [
      { config: { string_param: text }, 'file:1/model.py': { bytes_param: file } },
      { config: text, 'file:1/model.py': file },
    ],
    [{ 'file:1/model.py': { bytes_param: file } }, { 'file:1/model.py': file }],
    [{ config: { int64_param: 5 } }, { config: 5 }],
    [
      { 'file:1/model.py': { string_param: 'x' }, config: { string_param: text } },
      { 'file:1/model.py': 5, config: text },
    ],
    [{ nope: { string_param: 'x' } }, { nope: 'x' }],
    [{ nope: { bool_param: true } }, { nope: true }],
    [{ unload_dependents: { bool_param: true } }, { unload_dependents: true }],
    [{ config: {} }, { config: null }],
  ])
}

function unloadParameters({ oneOf }: Random): readonly [Record<string, unknown>, unknown] {
  return oneOf([
    [{}, undefined],
    [{}, {}],
    [{ unload_dependents: { bool_param: true } }, { unload_dependents: true }],
    [{ unload_dependents: { bool_param: false } }, { unload_dependents: false }],
    [{ unload_dependents: { string_param: 'yes' } }, { unload_dependents: 'yes' }],
    [{ unload_dependents: { int64_param: 1 } }, { unload_dependents: 1 }],
    [{ nope: { bool_param: true } }, { nope: true }],
  ])
}

type Control = 'load' | 'unload'

/** @param files - of the case: a python model without its file would block Triton for half a minute. */
function control(
  verb: Control,
  name: string,
  random: Random,
  { isRest, files }: { readonly isRest: boolean; readonly files: Files },
): Call {
  const hasCode = Object.hasOwn(files, `${name}/1/model.py`)
  const all = verb === 'load' ? loadParameters(random) : unloadParameters(random)
  const [grpc, rest] = verb === 'unload' || hasCode ? all : [{}, undefined]
  if (!isRest) {
    const rpc = verb === 'load' ? 'RepositoryModelLoad' : 'RepositoryModelUnload'
    const repository = random.chance(0.05) ? { repository_name: 'x' } : {}
    return { rpc, requests: [{ model_name: name, parameters: grpc, ...repository }] }
  }
  const bodies = ['', '{', '[]', '5', '{"parameters":5}', '{"parameters":[]}', '{"x":1}']
  const plain = rest === undefined ? '' : JSON.stringify({ parameters: rest })
  const body = random.chance(0.1) ? random.oneOf(bodies) : plain
  return { method: 'POST', path: `/v2/repository/models/${encodeURIComponent(name)}/${verb}`, body }
}

function plainLoad(name: string, isRest: boolean): Call {
  return isRest
    ? { method: 'POST', path: `/v2/repository/models/${name}/load` }
    : { rpc: 'RepositoryModelLoad', requests: [{ model_name: name }] }
}

function look(name: string, { oneOf }: Random): Call {
  const infer = { inputs: [{ name: 'X', datatype: 'FP32', shape: [2], data: [1, 2] }] }
  return oneOf<Call>([
    { rpc: 'RepositoryIndex', requests: [{}] },
    { method: 'POST', path: '/v2/repository/index', body: '' },
    { rpc: 'ModelConfig', requests: [{ name }] },
    { method: 'GET', path: `/v2/models/${name}/config` },
    { method: 'GET', path: `/v2/models/${name}` },
    { rpc: 'ModelReady', requests: [{ name }] },
    { method: 'GET', path: `/v2/models/${name}/ready` },
    { rpc: 'ServerReady', requests: [{}] },
    { method: 'POST', path: `/v2/models/${name}/infer`, body: JSON.stringify(infer) },
    { rpc: 'ModelInfer', requests: [{ model_name: name }] },
    { rpc: 'ModelStatistics', requests: [{ name }] },
  ])
}

/** A model that is loaded, looked at, perhaps loaded again, and unloaded: right or wrong in configuration, code, calls. */
export function controlCase(seed: number, random: Random): Omit<Case, 'id'> {
  const { chance, oneOf } = random
  const [name, step] = [`ctl_${seed}`, `step_${seed}`]
  const isRest = chance(0.5)
  const kind = oneOf([
    'fields',
    'fields',
    'fields',
    'code',
    'ensemble',
    'ensemble',
    'calls',
    'calls',
    'absent',
  ])
  const builders: Readonly<Record<string, () => Files>> = {
    fields: () => configured(name, random),
    code: () => python(name, chance(0.5) ? PYTHON : 'backend: "python"\n', oneOf(CODES)),
    ensemble: () => ({ ...python(step, PYTHON), ...composed(name, step, random) }),
    calls: () => python(name, PYTHON),
    absent: () =>
      oneOf([{}, { [`${name}/config.pbtxt`]: PYTHON }, python(name, PYTHON, IDENTITY, '01')]),
  }
  const files = builders[kind]?.() ?? {}
  const isPlain = kind !== 'calls'
  const own = { isRest, files }
  const calls: Call[] = [
    isPlain ? plainLoad(name, isRest) : control('load', name, random, own),
    look(name, random),
    look(name, random),
    ...(chance(0.3) ? [control('load', name, random, own), look(name, random)] : []),
    ...(kind === 'ensemble' && chance(0.3)
      ? [control('unload', step, random, own), { settle: true } as const, look(name, random)]
      : []),
    ...(chance(0.5)
      ? [control('unload', name, random, own), { settle: true } as const, look(name, random)]
      : []),
  ]
  return { files, calls }
}
