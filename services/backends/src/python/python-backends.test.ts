// needs: python
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ModelConfig, type ModelVersionSource, parseModelConfig } from '@tutti/model-config'
import { instanceGroup } from '@tutti/model-config/testing'
import type { NamedTensor } from '@tutti/tensor'
import { RecordedResponses } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import { createEngines, selectEngine } from '../engines.ts'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import { bytesRequestInput, TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'

const interpreter = TEST_PYTHON ?? 'python3'
const settings = new Map([['python', { settings: {}, interpreter }]])

const ADD_ONE = `import os
import numpy as np
import triton_python_backend_utils as pb_utils
import neighbour

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "x", "data_type": "TYPE_UINT8", "dims": [-1]})
        config.add_output({"name": "y", "data_type": "TYPE_UINT8", "dims": [-1]})
        return config

    def initialize(self, args):
        with open(os.path.join(args["model_repository"], args["model_version"], "step.txt")) as file:
            self.step = int(file.read()) + neighbour.MORE
        assert pb_utils.get_model_dir() == os.path.join(args["model_repository"], "1")
        assert __name__ == "model"

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("y", request.inputs()[0].as_numpy() + np.uint8(self.step))])
            for request in requests
        ]
`

interface Folders {
  readonly backends: string
  readonly source: (text: string) => ModelVersionSource
}

/** A directory of backends with `addone`, and a model that has a file of its own and a model.py that is not its class. */
async function makeFolders(t: Test): Promise<Folders> {
  const root = await mkdtemp(join(tmpdir(), 'tutti-backends-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  const backends = join(root, 'backends')
  const versionDirectory = join(root, 'm', '1')
  await mkdir(join(backends, 'addone'), { recursive: true })
  await mkdir(join(backends, 'native'))
  await mkdir(versionDirectory, { recursive: true })
  await writeFile(join(backends, 'addone', 'model.py'), ADD_ONE)
  await writeFile(join(backends, 'addone', 'neighbour.py'), 'MORE = 1\n')
  await writeFile(join(backends, 'native', 'libtriton_native.so'), '')
  await writeFile(join(versionDirectory, 'step.txt'), '4')
  await writeFile(join(versionDirectory, 'model.py'), 'raise ValueError("not the class")')
  const place = { name: 'm', version: 1, modelDirectory: join(root, 'm'), versionDirectory }
  return { backends, source: (text) => ({ ...place, revision: '0', config: configOf(text) }) }
}

function configOf(text: string): ModelConfig {
  const parsed = parseModelConfig(`name: "m" ${text}`, 'config.pbtxt')
  return { ...parsed, instance_group: [instanceGroup({ name: 'm' })] }
}

await t.test(
  'a backend is a folder with a model.py, and serves models that have files of their own',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const { backends, source } = await makeFolders(t)
    const engines = createEngines({ settings, backendDirectory: backends })
    const engine = await selectEngine(engines, 'addone', 'm')
    t.equal(await selectEngine(engines, 'addone', 'other'), engine, 'one for all its models')
    const config = await engine.complete?.(source('backend: "addone"'))
    t.same(
      [config?.runtime, config?.input[0]?.name, config?.output[0]?.name],
      ['model.py', 'x', 'y'],
    )
    const completed = { ...source('backend: "addone"'), config: config ?? configOf('') }
    const model = await engine.load(completed, { instances: 1 })
    t.teardown(() => model.close())
    const [answer] = await executeOnce(model, [stepRequest([bytesRequestInput(1, 2)])])
    t.same([...(answer?.outputs[0]?.data ?? [])], [6, 7])
  },
)

await t.test('what no folder serves is refused in the words of Triton', async (t) => {
  const { backends, source } = await makeFolders(t)
  const engines = createEngines({ settings, backendDirectory: backends })
  for (const backend of ['native', 'nosuch', '../addone', '.', '..', 'a/b']) {
    await t.rejects(selectEngine(engines, backend, 'm'), {
      reason: 'BACKEND_UNSUPPORTED',
      message: new RegExp(
        `^unable to find backend library for backend '${backend}', try specifying runtime on the model configuration\\.`,
      ),
    })
  }
  const { versionDirectory, modelDirectory } = source('')
  for (const [text, message] of [
    [
      'backend: "addone" runtime: "other.py"',
      `unable to find backend library 'other.py' for model 'm', searched: '${versionDirectory}' '${modelDirectory}' '${backends}/addone' `,
    ],
    [
      'backend: "python" runtime: "model.py"',
      `unable to find Python backend based backend library 'model.py' for model 'm', searched: '${versionDirectory}/model.py'`,
    ],
  ] as const) {
    const config = source(text)
    const engine = await selectEngine(engines, config.config.backend, 'm')
    const want = { message, code: 'INVALID_ARGUMENT', details: { field: 'runtime' } }
    await t.rejects(engine.load(config, { instances: 1 }), want)
  }
})

const port = (name: string, type: string) => `{ name: "${name}" data_type: ${type} dims: [-1] }`
const DECOUPLED = 'model_transaction_policy { decoupled: true }'

async function loadStock(t: Test, text: string) {
  const { source } = await makeFolders(t)
  const version = source(text)
  const engine = await selectEngine(createEngines({ settings }), version.config.backend, 'm')
  const completed = await engine.complete?.(version)
  const model = await engine.load(
    { ...version, config: completed ?? version.config },
    { instances: 1 },
  )
  t.teardown(() => model.close())
  return async (...inputs: readonly NamedTensor[]) => {
    const sink = new RecordedResponses()
    const signal = new AbortController().signal
    await model.execute([{ request: stepRequest(inputs), sink }], { instance: 0, signal })
    return sink.responses.map(({ outputs, error, final }) => ({
      ...Object.fromEntries(
        outputs.map(({ name, shape, data }) => [name, [...shape, '|', ...data].join(' ')]),
      ),
      ...(error && { error: error.message }),
      ...(final && { final }),
    }))
  }
}

const int32 = (name: string, ...values: readonly number[]): NamedTensor => ({
  name,
  datatype: 'INT32',
  shape: [values.length],
  data: new Uint8Array(Int32Array.from(values).buffer),
})
const uint32 = (name: string, ...values: readonly number[]): NamedTensor => ({
  ...int32(name, ...values),
  datatype: 'UINT32',
})

const data = (...bytes: readonly number[]) => Uint8Array.from(bytes)

await t.test(
  'identity gives each INPUT<n> back as OUTPUT<n>, whatever its datatype',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const types = ['TYPE_INT32', 'TYPE_STRING', 'TYPE_BF16', 'TYPE_BOOL']
    const ports = (prefix: string) => types.map((type, i) => port(`${prefix}${i}`, type)).join()
    const ask = await loadStock(
      t,
      `backend: "identity" input [${ports('INPUT')}] output [${ports('OUTPUT')}]
      parameters { key: "execute_delay_ms" value { string_value: "1" } }`,
    )
    t.same(
      await ask(
        int32('INPUT0', 1, 2),
        { name: 'INPUT1', datatype: 'BYTES', shape: [1, 1], data: data(1, 0, 0, 0, 255) },
        { name: 'INPUT2', datatype: 'BF16', shape: [1], data: data(128, 63) },
        { name: 'INPUT3', datatype: 'BOOL', shape: [0], data: data() },
      ),
      [
        {
          OUTPUT0: '2 | 1 0 0 0 2 0 0 0',
          OUTPUT1: '1 1 | 1 0 0 0 255',
          OUTPUT2: '1 | 128 63',
          OUTPUT3: '0 |',
          final: true,
        },
      ],
    )
    const large = Uint8Array.from({ length: 40_000 }, (_, i) => i % 251)
    const [answer] = await ask({ name: 'INPUT0', datatype: 'INT32', shape: [10_000], data: large })
    t.equal(answer && Object(answer)['OUTPUT0'], `10000 | ${large.join(' ')}`)
  },
)

await t.test('repeat and square stream their input', { skip: WITHOUT_PYTHON }, async (t) => {
  const repeat = await loadStock(
    t,
    `backend: "repeat" ${DECOUPLED}
      input [${port('IN', 'TYPE_INT32')}, ${port('DELAY', 'TYPE_UINT32')}, ${port('WAIT', 'TYPE_UINT32')}]
      output [${port('OUT', 'TYPE_INT32')}, ${port('IDX', 'TYPE_UINT32')}]`,
  )
  t.same(await repeat(int32('IN', 7, 8), uint32('DELAY', 1, 2), uint32('WAIT', 1)), [
    { OUT: '1 | 7 0 0 0', IDX: '1 | 0 0 0 0' },
    { OUT: '1 | 8 0 0 0', IDX: '1 | 1 0 0 0' },
    { final: true },
  ])
  t.same(await repeat(int32('IN', 7, 8), uint32('DELAY', 1), uint32('WAIT', 1)), [
    { error: 'expected IN and DELAY shape to match, got [2] and [1]', final: true },
  ])
  const square = await loadStock(
    t,
    `backend: "square" ${DECOUPLED} input [${port('IN', 'TYPE_INT32')}] output [${port('OUT', 'TYPE_INT32')}]`,
  )
  t.same(await square(int32('IN', 2)), [
    { OUT: '1 | 2 0 0 0' },
    { OUT: '1 | 2 0 0 0' },
    { final: true },
  ])
  t.same(await square(int32('IN', 0)), [{ final: true }])
})

const control = (name: string, kind: string, type: string) =>
  `control_input { name: "${name}" control { kind: CONTROL_SEQUENCE_${kind} ${type} } }`
const VALUES = 'int32_false_true: [0, 1]'
const START_READY = control('START', 'START', VALUES) + control('READY', 'READY', VALUES)
const SUM = `input [${port('INPUT', 'TYPE_INT32')}] output [${port('OUTPUT', 'TYPE_INT32')}]`
const uint64 = (name: string, value: bigint): NamedTensor => ({
  name,
  datatype: 'UINT64',
  shape: [1],
  data: new Uint8Array(BigUint64Array.of(value).buffer),
})

await t.test('dyna_sequence and sequence sum up', { skip: WITHOUT_PYTHON }, async (t) => {
  const id = control('CORRID', 'CORRID', 'data_type: TYPE_UINT64')
  const all = START_READY + control('END', 'END', VALUES) + id
  const dyna = await loadStock(
    t,
    `backend: "dyna_sequence" ${SUM} sequence_batching { oldest { max_candidate_sequences: 4 } ${all} }`,
  )
  const sum = async (id: bigint, values: readonly number[], start = 0, end = 0) => {
    const flags = [int32('START', start), int32('END', end), int32('READY', 1)]
    const [answer] = await dyna(int32('INPUT', ...values), ...flags, uint64('CORRID', id))
    return Object(answer)['OUTPUT']
  }
  t.equal(await sum(7n, [1, 2], 1), '2 | 3 0 0 0 3 0 0 0')
  t.equal(await sum(2n ** 32n + 9n, [5], 1), '1 | 5 0 0 0')
  t.equal(await sum(7n, [4]), '1 | 7 0 0 0')
  t.equal(await sum(7n, [1], 0, 1), '1 | 15 0 0 0', 'with the correlation id')
  t.equal(await sum(2n ** 32n + 9n, [-6], 0, 1), '1 | 8 0 0 0', 'its lower half')
  t.equal(await sum(7n, [2 ** 31 - 1], 1), '1 | 255 255 255 127')
  t.equal(await sum(7n, [1]), '1 | 0 0 0 128')
  const direct = await loadStock(
    t,
    `backend: "sequence" ${SUM} sequence_batching { ${START_READY} }`,
  )
  const ready = int32('READY', 1)
  t.same(await direct(int32('INPUT', 1, 2), int32('START', 1), ready), [
    { OUTPUT: '2 | 3 0 0 0 3 0 0 0', final: true },
  ])
  t.same(await direct(int32('INPUT', 9), int32('START', 0), int32('READY', 0)), [{ final: true }])
  t.same(await direct(int32('INPUT', 4), int32('START', 0), ready), [
    { OUTPUT: '1 | 7 0 0 0', final: true },
  ])
})

await t.test(
  'a configuration that a stock backend cannot serve is refused',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    for (const [text, message] of [
      [
        `backend: "identity" input [${port('A', 'TYPE_INT32')}] output [${port('OUTPUT0', 'TYPE_INT32')}]`,
        "expected names of the form INPUT<index>, got 'A'",
      ],
      [
        `backend: "identity" input [${port('INPUT0', 'TYPE_INT32')}] output [${port('OUTPUT1', 'TYPE_INT32')}]`,
        'expected an OUTPUT<index> for each INPUT<index>, got inputs [0] and outputs [1]',
      ],
      [
        `backend: "identity" parameters { key: "execute_delay_ms" value { string_value: "soon" } }`,
        "parameter 'execute_delay_ms': got 'soon', want a whole number",
      ],
      [
        `backend: "square" input [${port('IN', 'TYPE_INT32')}] output [${port('OUT', 'TYPE_INT32')}]`,
        'expected model_transaction_policy { decoupled: true }',
      ],
      [
        `backend: "square" ${DECOUPLED} input [${port('IN', 'TYPE_FP32')}] output [${port('OUT', 'TYPE_INT32')}]`,
        "expected input IN of TYPE_INT32, got {'IN': 'TYPE_FP32'}",
      ],
      [
        `backend: "dyna_sequence" ${SUM} sequence_batching { ${START_READY} }`,
        "'START', 'END, 'READY' and 'CORRID' must be configured as the control inputs",
      ],
      [`backend: "sequence" ${SUM}`, "'START' and 'READY' must be configured"],
      [`backend: "repeat" ${DECOUPLED}`, "expected inputs {'IN': 'TYPE_INT32'"],
    ] as const) {
      const escaped = message.replaceAll(/[[\]{}()]/g, '\\$&')
      const want = { reason: 'MODEL_LOAD_FAILED', message: new RegExp(escaped) }
      await t.rejects(loadStock(t, text), want)
    }
  },
)
