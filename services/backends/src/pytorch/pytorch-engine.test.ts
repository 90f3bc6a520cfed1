// needs: python, torch
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'
import type { ModelConfig } from '@tutti/model-config'
import { instanceGroup } from '@tutti/model-config/testing'
import { encodeBytesTensor, type NamedTensor } from '@tutti/tensor'
import type { RecordedResponse } from '@tutti/tensor/testing'
import t from 'tap'
import type { LoadedModel } from '../engine.ts'
import { createEngines, selectEngine } from '../engines.ts'
import { executeOnce, fp32Tensor, fp32Values } from '../testing/execute.ts'
import { type DeclaredTensor, modelConfig, stepRequest } from '../testing/model-source.ts'
import type { Teardown } from '../testing/python-model.ts'
import { createPytorchEngine } from './pytorch-engine.ts'

t.setTimeout(600_000)

const TORCH_PYTHON = env['TUTTI_TEST_TORCH_PYTHON']
const PYTHON = env['TUTTI_TEST_PYTHON']
const withoutTorch =
  TORCH_PYTHON === undefined &&
  (env['TUTTI_TEST_TORCH_MISSING'] ?? 'TUTTI_TEST_TORCH_PYTHON names no Python with PyTorch')

const MAKE_MODELS = fileURLToPath(new URL('../testing/torchscript_models.py', import.meta.url))
const root = await mkdtemp(join(tmpdir(), 'tutti-torchscript-'))
t.teardown(() => rm(root, { recursive: true, force: true }))
if (TORCH_PYTHON !== undefined) execFileSync(TORCH_PYTHON, ['-B', MAKE_MODELS, root])

const fp32 = (name: string, dims: readonly number[]): DeclaredTensor => ({
  name,
  type: 'TYPE_FP32',
  dims,
})

const IMAGE = [3, -1, -1]
const TRACED = [[fp32('INPUT__0', IMAGE)], [fp32('OUTPUT__0', IMAGE)]] as const
const SCRIPTED = [
  [fp32('right', [-1]), fp32('left', [-1])],
  [fp32('sum__1', [-1]), fp32('difference__0', [-1])],
] as const

interface Wanted {
  readonly rest?: Partial<ModelConfig>
  readonly interpreter?: string | undefined
}

function source(
  name: string,
  ports: readonly [readonly DeclaredTensor[], readonly DeclaredTensor[]],
  rest: Partial<ModelConfig> = {},
) {
  const config = modelConfig(ports[0], ports[1], {
    name,
    backend: 'pytorch',
    platform: 'pytorch_libtorch',
    instance_group: [instanceGroup({ name })],
    ...rest,
  })
  const modelDirectory = join(root, name)
  const versionDirectory = join(modelDirectory, '1')
  return { name, version: 1, modelDirectory, versionDirectory, revision: '0', config }
}

async function load(
  t: Teardown,
  name: string,
  ports: Parameters<typeof source>[1],
  { rest, interpreter = TORCH_PYTHON }: Wanted = {},
): Promise<LoadedModel> {
  const engine = createPytorchEngine({ interpreter: interpreter ?? 'python3' })
  const model = await engine.load(source(name, ports, rest), { instances: 1 })
  t.teardown(() => model.close())
  return model
}

async function run(model: LoadedModel, ...inputs: NamedTensor[]): Promise<RecordedResponse> {
  const [response] = await executeOnce(model, [stepRequest(inputs)])
  if (response === undefined) throw new Error('no response')
  return response
}

const floats = (bytes: Uint8Array): Float32Array => new Float32Array(new Uint8Array(bytes).buffer)

await t.test('a traced network gives what torch gives', { skip: withoutTorch }, async (t) => {
  const model = await load(t, 'traced', TRACED, { rest: { max_batch_size: 4 } })
  const folder = join(root, 'traced', '1')
  const data = await readFile(join(folder, 'input.bin'))
  const wanted = floats(await readFile(join(folder, 'output.bin')))
  const shape = [2, 3, 20, 24]
  const response = await run(model, { name: 'INPUT__0', datatype: 'FP32', shape, data })
  t.strictSame(response.outputs[0]?.shape, shape)
  const got = fp32Values(response, 'OUTPUT__0')
  t.equal(got.length, wanted.length)
  const worst = Math.max(...got.map((value, i) => Math.abs(value - (wanted[i] ?? Number.NaN))))
  t.ok(worst <= 1e-5, `greatest difference ${worst}`)
})

function evenRequest(batch: number, side: number, value: number) {
  const shape = [batch, 3, side, side]
  const count = shape.reduce((product, extent) => product * extent)
  const values = Array.from({ length: count }, () => value)
  return stepRequest([fp32Tensor('INPUT__0', shape, values)], { batchSize: batch })
}

await t.test('ragged requests of other shapes run together', { skip: withoutTorch }, async (t) => {
  const names = { source_input: ['x'], target_name: ['made'] }
  const [input] = modelConfig([fp32('x', [-1])], []).input
  const model = await load(t, 'segments', [[], [fp32('double__0', [-1]), fp32('ends__1', [1])]], {
    rest: {
      max_batch_size: 8,
      input: input === undefined ? [] : [{ ...input, allow_ragged_batch: true }],
      batch_input: [{ ...names, kind: 'BATCH_ACCUMULATED_ELEMENT_COUNT', data_type: 'TYPE_FP32' }],
      batch_output: [
        { ...names, kind: 'BATCH_SCATTER_WITH_INPUT_SHAPE', target_name: ['double__0'] },
      ],
    },
  })
  const requests = [[1, 2, 3], [4], [5, 6]].map((values) =>
    stepRequest([fp32Tensor('x', [1, values.length], values)], { batchSize: 1 }),
  )
  const responses = await executeOnce(model, requests)
  t.same(
    responses.map((r) => [
      r.outputs[0]?.shape,
      fp32Values(r, 'double__0'),
      fp32Values(r, 'ends__1'),
    ]),
    [
      [[1, 3], [2, 4, 6], [3]],
      [[1, 1], [8], [4]],
      [[1, 2], [10, 12], [6]],
    ],
  )
})

await t.test('requests of one shape run together', { skip: withoutTorch }, async (t) => {
  const model = await load(t, 'traced', TRACED, { rest: { max_batch_size: 8 } })
  const requests = [evenRequest(1, 4, 0.5), evenRequest(2, 4, 0.25), evenRequest(1, 6, 0.5)]
  const together = await executeOnce(model, requests)
  for (const [i, alone] of requests.entries()) {
    const [wanted] = await executeOnce(model, [alone])
    const values = fp32Values(wanted, 'OUTPUT__0')
    const got = fp32Values(together[i], 'OUTPUT__0')
    t.strictSame(together[i]?.outputs[0]?.shape, alone.inputs[0]?.shape)
    t.ok(got.every((value, j) => Math.abs(value - (values[j] ?? Number.NaN)) <= 1e-5))
  }
})

await t.test('arguments by name, results by index', { skip: withoutTorch }, async (t) => {
  const model = await load(t, 'scripted', SCRIPTED)
  const left = fp32Tensor('left', [2], [3, 5])
  const right = fp32Tensor('right', [2], [1, 1])
  const response = await run(model, right, left)
  t.strictSame(fp32Values(response, 'difference__0'), [2, 4])
  t.strictSame(fp32Values(response, 'sum__1'), [4, 6])
  const [one] = await executeOnce(model, [
    stepRequest([left, right], { requestedOutputs: ['sum__1'] }),
  ])
  t.strictSame(
    one?.outputs.map(({ name }) => name),
    ['sum__1'],
  )
  const failed = await run(model, right, fp32Tensor('left', [2], [-3, 1]))
  t.match(failed.error?.message, /^PyTorch execute failure: [^]*the sum is negative/)
  t.equal(failed.error?.code, 'INTERNAL')
  t.strictSame(fp32Values(await run(model, right, left), 'sum__1'), [4, 6])
})

function textPort(name: string) {
  return { name, type: 'TYPE_STRING' as const, dims: [-1] }
}

await t.test('texts go in and come out', { skip: withoutTorch }, async (t) => {
  const model = await load(t, 'texts', [[textPort('INPUT__0')], [textPort('OUTPUT__0')]])
  const elements = ['ab', 'ü', ''].map((element) => new TextEncoder().encode(element))
  const data = encodeBytesTensor(elements)
  const response = await run(model, { name: 'INPUT__0', datatype: 'BYTES', shape: [3], data })
  // TorchScript's `upper` knows the letters of ASCII alone.
  const wanted = ['AB', 'ü', ''].map((element) => new TextEncoder().encode(element))
  t.strictSame(Buffer.from(response.outputs[0]?.data ?? []), Buffer.from(encodeBytesTensor(wanted)))
})

await t.test(
  'what does not fit is an answer in Triton’s words',
  { skip: withoutTorch },
  async (t) => {
    const inputs = SCRIPTED[0]
    const cases = [
      [
        [{ name: 'difference__0', type: 'TYPE_INT32', dims: [-1] }],
        "configuration expects datatype TYPE_INT32 for output 'difference__0', model provides TYPE_FP32",
      ],
      [
        [fp32('other__2', [-1])],
        "The output other__2 in the model configuration refers to an output index which doesn't exist. This model has 2 outputs",
      ],
    ] as const
    for (const [outputs, message] of cases) {
      const model = await load(t, 'scripted', [inputs, outputs])
      const response = await run(model, fp32Tensor('left', [1], [1]), fp32Tensor('right', [1], [1]))
      t.match(response.error, { message, code: 'INVALID_ARGUMENT' })
    }
  },
)

await t.test(
  'what cannot be loaded says why, and nothing else',
  { skip: withoutTorch },
  async (t) => {
    const folder = join(root, 'scripted', '1')
    await writeFile(join(folder, 'nothing.pt'), 'nothing')
    const cases = [
      [{ default_model_filename: 'nothing.pt' }, /^failed to load model 'scripted': /],
      [
        { default_model_filename: 'absent.pt' },
        /^unable to find '.*absent\.pt' for model 'scripted'$/,
      ],
      [
        { default_model_filename: '../../x.pt' },
        /'\.\.\/\.\.\/x\.pt' is outside the version directory$/,
      ],
      [
        { cc_model_filenames: { '8.0': '../../x.pt' } },
        /cc_model_filenames '\.\.\/\.\.\/x\.pt' is outside the version directory$/,
      ],
      [
        { platform: 'torch_aoti' },
        /^unable to load model 'scripted', platform 'torch_aoti' is not/,
      ],
      [{ runtime: 'model.py' }, /, runtime 'model\.py' is not supported, only TorchScript/],
      [
        { input: [] },
        /^model configuration must contain at least one input, none were specified\.$/,
      ],
      [
        { parameters: { NUM_THREADS: { string_value: 'many' } } },
        /^failed to load model 'scripted': parameter 'NUM_THREADS' must be a number of threads/,
      ],
      [
        { instance_group: [instanceGroup({ kind: 'KIND_GPU', gpus: [0] })] },
        /^failed to load model 'scripted': its instance group asks for GPU 0, and PyTorch/,
      ],
    ] as const
    for (const [rest, message] of cases) {
      await t.rejects(load(t, 'scripted', SCRIPTED, { rest }), { message })
    }
  },
)

await t.test('names that contradict the order fail the load', { skip: withoutTorch }, async (t) => {
  const outputs = [fp32('o__1', [-1]), fp32('rest', [-1])]
  await t.rejects(load(t, 'scripted', [SCRIPTED[0], outputs]), {
    message: /output 'o__1' names position 1 and stands at 0/,
  })
})

await t.test(
  'without PyTorch a load says what to install and where',
  { skip: withoutTorch || (PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set') },
  async (t) => {
    const probe = ['-c', 'import importlib.util as u; print(u.find_spec("torch") is None)']
    const lacksTorch = execFileSync(PYTHON ?? '', probe, { encoding: 'utf8' }).trim() === 'True'
    if (!lacksTorch) return t.comment(`${PYTHON} has PyTorch`)
    await t.rejects(load(t, 'scripted', SCRIPTED, { interpreter: PYTHON }), {
      message:
        /^failed to load model 'scripted': PyTorch cannot be imported by .*python.* \(ModuleNotFoundError: .*Install it there/,
    })
  },
)

await t.test('the engine is there by its name', async (t) => {
  const engines = createEngines()
  const engine = await selectEngine(engines, 'pytorch', 'm')
  t.equal(engine.backend, 'pytorch')
  t.strictSame(await engine.inspect(''), {
    inputs: [],
    outputs: [],
    batchable: false,
  })
})
