import { createDevices, type Devices, type Engine } from '@tutti/backends'
import { type ModelConfig, normaliseModelConfig, parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import { leavesIdle, requireDevices, toNormaliseOptions } from './instance-devices.ts'

type Cuda = NonNullable<Engine['cuda']>

const IO =
  'input { name: "x" data_type: TYPE_FP32 dims: 4 } output { name: "y" data_type: TYPE_FP32 dims: 4 }'
const CAN: Cuda = { problem: () => undefined, modelChooses: false }
const CANNOT: Cuda = { problem: () => 'no provider', modelChooses: false }

const engineOf = (backend: string, cuda?: Cuda): Engine => ({
  backend,
  ...(cuda && { cuda }),
  inspect: () => Promise.reject(new Error('not asked')),
  load: () => Promise.reject(new Error('not asked')),
})
const ONNX = engineOf('onnxruntime', CAN)
const PYTHON = engineOf('python')

function machine(count: number, resource?: string): Devices {
  const [resourceName = '', given] = resource?.split('=') ?? []
  return createDevices({
    ...(resource !== undefined && { accelerator: { resourceName, count: Number(given) } }),
    askDriver: () => Promise.resolve(count > 0 ? { count } : { count: 0, problem: 'none' }),
  })
}

async function prepare(engine: Engine, devices: Devices, groups: string): Promise<ModelConfig> {
  const text = `name: "m" backend: "${engine.backend}" ${IO} ${groups}`
  const config = parseModelConfig(text, 'config.pbtxt')
  return normaliseModelConfig(config, await toNormaliseOptions(config, engine, devices))
}

async function place(engine: Engine, devices: Devices, groups: string) {
  const config = await prepare(engine, devices, groups)
  await requireDevices(config, engine, devices)
  return config.instance_group.map(({ kind, count, gpus }) => [kind, count, gpus])
}

const AUTO = 'instance_group { kind: KIND_AUTO }'
const GPU = 'instance_group { kind: KIND_GPU }'
const CPU_TWICE = ['KIND_CPU', 2, []]

await t.test('where instances execute', async (t) => {
  const rows: readonly (readonly [string, Engine, Devices, string, unknown])[] = [
    ['nothing given', ONNX, machine(0), '', CPU_TWICE],
    ['a GPU that was not given', ONNX, machine(2), '', CPU_TWICE],
    ['given, nothing said', ONNX, machine(1, 'nvidia.com/gpu=1'), '', ['KIND_GPU', 1, [0]]],
    ['given, KIND_AUTO', ONNX, machine(2, 'nvidia.com/gpu=2'), AUTO, ['KIND_GPU', 1, [0, 1]]],
    ['one given of two', ONNX, machine(2, 'nvidia.com/gpu=1'), GPU, ['KIND_GPU', 1, [0]]],
    ['a part of one', ONNX, machine(1, 'nvidia.com/mig-1g.5gb=1'), '', ['KIND_GPU', 1, [0]]],
    ['two shares of one', ONNX, machine(1, 'nvidia.com/gpu.shared=2'), '', ['KIND_GPU', 1, [0]]],
    ['KIND_GPU alone', ONNX, machine(2), GPU, ['KIND_GPU', 1, [0, 1]]],
    ['GPUs without a kind', ONNX, machine(2), 'instance_group { gpus: 1 }', ['KIND_GPU', 1, [1]]],
    [
      'one of them',
      ONNX,
      machine(2),
      'instance_group { kind: KIND_GPU gpus: 1 count: 3 }',
      ['KIND_GPU', 3, [1]],
    ],
    [
      'KIND_CPU says so itself',
      ONNX,
      machine(1, 'nvidia.com/gpu=1'),
      'instance_group { kind: KIND_CPU }',
      CPU_TWICE,
    ],
    ['Python that says nothing', PYTHON, machine(1, 'nvidia.com/gpu=1'), '', ['KIND_CPU', 1, []]],
    ['Python of another vendor', PYTHON, machine(0, 'amd.com/gpu=2'), GPU, ['KIND_GPU', 1, [0, 1]]],
  ]
  for (const [what, engine, devices, groups, wanted] of rows) {
    t.same(await place(engine, devices, groups), [wanted], what)
  }
})

await t.test('what is asked for and not there is refused with what was found', async (t) => {
  const rows: readonly (readonly [Engine, Devices, string, string])[] = [
    [
      ONNX,
      machine(0, 'nvidia.com/gpu=1'),
      '',
      "instance group m of model m has kind KIND_GPU but no GPUs are available (accelerator nvidia.com/gpu=1, no CUDA driver: none; want a node with NVIDIA's driver)",
    ],
    [
      engineOf('onnxruntime', CANNOT),
      machine(0),
      GPU,
      "instance group m_0 of model m has kind KIND_GPU but no GPUs are available (no accelerator, no CUDA driver: none; no provider; want a node with NVIDIA's driver)",
    ],
    [
      engineOf('onnxruntime', CANNOT),
      machine(2, 'nvidia.com/gpu=2'),
      'instance_group [{ kind: KIND_CPU }, { kind: KIND_GPU }]',
      'instance group m_1 of model m has kind KIND_GPU but no GPUs are available (accelerator nvidia.com/gpu=2, CUDA devices: 2; no provider)',
    ],
    [
      ONNX,
      machine(0, 'amd.com/gpu=1'),
      AUTO,
      "instance group m_0 of model m has kind KIND_GPU but no GPUs are available (accelerator amd.com/gpu=1, no CUDA driver: none; want a node with NVIDIA's driver)",
    ],
    [
      ONNX,
      machine(2, 'nvidia.com/gpu=2'),
      'instance_group { kind: KIND_GPU gpus: [ 0, 2 ] }',
      'instance group m_0 of model m specifies invalid or unsupported gpu id 2. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are: 0, 1 (accelerator nvidia.com/gpu=2, CUDA devices: 2)',
    ],
    [
      PYTHON,
      machine(0),
      'instance_group { gpus: 0 }',
      'instance group m_0 of model m specifies invalid or unsupported gpu id 0. GPUs with at least the minimum required CUDA compute compatibility of 6.000000 are:  (no accelerator, no CUDA driver: none)',
    ],
    [
      PYTHON,
      machine(0),
      GPU,
      'instance group m_0 of model m has kind KIND_GPU but no GPUs are available (no accelerator, no CUDA driver: none)',
    ],
  ]
  for (const [engine, devices, groups, message] of rows) {
    const field = message.includes('has kind') ? 'instance_group.kind' : 'instance_group'
    const wanted = { reason: 'DEVICE_UNAVAILABLE', message, details: { field } }
    await t.rejects(place(engine, devices, groups), wanted)
  }
})

await t.test('KIND_MODEL with devices is for models that choose', async (t) => {
  const devices = machine(1, 'nvidia.com/gpu=1')
  const groups = 'instance_group { kind: KIND_MODEL }'
  await t.rejects(place(ONNX, devices, groups), {
    reason: 'UNSUPPORTED',
    message:
      /^instance group m_0 of model m has kind KIND_MODEL with accelerator nvidia.com\/gpu=1/,
  })
  const torch = engineOf('pytorch', { ...CAN, modelChooses: true })
  for (const engine of [torch, PYTHON]) {
    t.same(await place(engine, devices, groups), [['KIND_MODEL', 1, []]])
  }
  t.same(await place(ONNX, machine(1), groups), [['KIND_MODEL', 1, []]], 'none was given')
})

await t.test('devices that no group wants are idle', async (t) => {
  const given = machine(1, 'nvidia.com/gpu=1')
  const both = 'instance_group [{ kind: KIND_CPU }, { kind: KIND_GPU }]'
  t.equal(leavesIdle(await prepare(ONNX, given, 'instance_group { kind: KIND_CPU }'), given), true)
  t.equal(leavesIdle(await prepare(ONNX, given, both), given), false)
  t.equal(leavesIdle(await prepare(PYTHON, given, ''), given), true)
  const none = machine(0)
  t.equal(leavesIdle(await prepare(ONNX, none, ''), none), false)
})
