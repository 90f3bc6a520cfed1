import { type ModelConfig, parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import { modelConfig } from '../testing/model-source.ts'
import { compileSessionOptions, toExecutionProviders } from './session-options.ts'

function withParameters(parameters: Readonly<Record<string, string>>): ModelConfig {
  const entries = Object.entries(parameters).map(([key, value]) => [key, { string_value: value }])
  return modelConfig([], [], { parameters: Object.fromEntries(entries) })
}

await t.test('parameters become session options', async (t) => {
  t.match(compileSessionOptions(modelConfig([], []), false), {
    session: {
      graphOptimizationLevel: 'all',
      intraOpNumThreads: 1,
      interOpNumThreads: 1,
      executionMode: 'sequential',
      enableCpuMemArena: true,
      enableMemPattern: true,
      extra: {},
    },
    ineffective: [],
  })
  const parameters = {
    intra_op_thread_count: '4',
    inter_op_thread_count: '0',
    execution_mode: '1',
    enable_mem_arena: '0',
    enable_mem_pattern: 'false',
    'session.intra_op.allow_spinning': '0',
  }
  t.match(compileSessionOptions(withParameters(parameters), false).session, {
    intraOpNumThreads: 4,
    interOpNumThreads: 0,
    executionMode: 'parallel',
    enableCpuMemArena: false,
    enableMemPattern: false,
    extra: { 'session.intra_op.allow_spinning': '0' },
  })
})

await t.test('graph levels are those of Triton', async (t) => {
  const cases = [
    [0, 'all'],
    [1, 'extended'],
    [-1, 'basic'],
    [2, 'disabled'],
  ] as const
  for (const [level, name] of cases) {
    const config = modelConfig([], [], {
      optimization: {
        priority: 'PRIORITY_DEFAULT',
        graph: { level },
        gather_kernel_buffer_threshold: 0,
        eager_batching: false,
      },
    })
    t.equal(compileSessionOptions(config, false).session.graphOptimizationLevel, name)
  }
})

await t.test(
  'what has no effect is reported, and a bound that cannot be kept is refused',
  async (t) => {
    const hints = { cudnn_conv_algo_search: '0', gpu_mem_limit: '1' }
    const { ineffective } = compileSessionOptions(withParameters(hints), false)
    t.same(
      ineffective.map((line) => line.split(':')[0]),
      ['parameters["cudnn_conv_algo_search"]', 'parameters["gpu_mem_limit"]'],
    )
    t.throws(() => compileSessionOptions(withParameters(hints), true), {
      reason: 'UNSUPPORTED',
      message: /parameters\["gpu_mem_limit"\]: the engine does not bound GPU memory/,
    })
  },
)

await t.test('accelerators of GPUs are for instances on one', async (t) => {
  const accelerator = { name: 'tensorrt', parameters: {} }
  const { optimization } = parseModelConfig(
    'optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }',
    'config.pbtxt',
  )
  t.match(optimization?.execution_accelerators, { gpu_execution_accelerator: [accelerator] })
  const config = modelConfig([], [], { ...(optimization && { optimization }) })
  const field = 'optimization.execution_accelerators.gpu_execution_accelerator'
  t.same(compileSessionOptions(config, false).ineffective, [`${field}: no instance is on a GPU`])
  t.same(compileSessionOptions(config, true).accelerators, {
    cpu: [],
    gpu: [{ name: 'tensorrt', options: {} }],
  })
})

await t.test('every field that does nothing here is reported if it is set', async (t) => {
  const config = modelConfig([], [], {
    optimization: {
      priority: 'PRIORITY_MAX',
      cuda: {
        graphs: true,
        busy_wait_events: true,
        graph_spec: [{ batch_size: 1, input: {} }],
        output_copy_stream: true,
      },
      gather_kernel_buffer_threshold: 1,
      eager_batching: true,
    },
    cc_model_filenames: { '8.0': 'model.onnx' },
    runtime: 'r',
  })
  t.same(
    compileSessionOptions(config, false).ineffective.map((line) => line.split(':')[0]),
    [
      'optimization.cuda.graphs',
      'optimization.cuda.graph_spec',
      'optimization.cuda.busy_wait_events',
      'optimization.cuda.output_copy_stream',
      'optimization.priority',
      'optimization.eager_batching',
      'optimization.gather_kernel_buffer_threshold',
      'cc_model_filenames',
      'runtime',
    ],
  )
})

await t.test('an instance on a GPU leaves to the CPU what CUDA lacks', async (t) => {
  const placement = { group: 'g', name: 'g_0', kind: 'GPU', deviceId: 3, policy: '' } as const
  const none = { cpu: [], gpu: [] }
  t.same(toExecutionProviders(placement, none), [{ name: 'cuda', deviceId: 3 }, { name: 'cpu' }])
  const onCpu = { ...placement, kind: 'CPU' } as const
  t.same(toExecutionProviders(onCpu, none), [{ name: 'cpu' }])
  const some = {
    cpu: [{ name: 'openvino', options: {} }],
    gpu: [{ name: 'tensorrt', options: {} }],
  }
  t.same(
    toExecutionProviders(placement, some).map(({ name, deviceId }) => [name, deviceId]),
    [
      ['tensorrt', 3],
      ['cuda', 3],
      ['openvino', undefined],
      ['cpu', undefined],
    ],
  )
  t.same(
    toExecutionProviders(onCpu, some).map(({ name }) => name),
    ['openvino', 'cpu'],
  )
})
