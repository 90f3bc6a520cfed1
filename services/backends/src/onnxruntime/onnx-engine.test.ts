import { statSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { buildOnnx } from '@tutti/builtins'
import { silentLogger } from '@tutti/chassis'
import type { ModelConfig } from '@tutti/model-config'
import { instanceGroup } from '@tutti/model-config/testing'
import { RecordedResponses } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import {
  ADD_CONFIG,
  addRequest,
  buildAddModel,
  fp32Declared,
  identitySpec,
  writeModelFile,
} from '../testing/add-model.ts'
import { executeOnce, fp32Tensor, fp32Values } from '../testing/execute.ts'
import { modelConfig, modelSource, stepRequest } from '../testing/model-source.ts'
import { cudaProviderProblem } from './cuda-provider.ts'
import { createOnnxEngine } from './onnx-engine.ts'

async function writeModel(t: Test, bytes: Uint8Array, filename?: string): Promise<string> {
  const { directory, remove } = await writeModelFile(bytes, filename)
  t.teardown(remove)
  return directory
}

async function loadModel(
  t: Test,
  bytes: Uint8Array,
  config: ModelConfig,
  instances = 1,
): Promise<LoadedModel> {
  const directory = await writeModel(t, bytes)
  const loaded = await createOnnxEngine().load(modelSource(directory, config), { instances })
  t.teardown(() => loaded.close())
  return loaded
}

await t.test('instances run side by side', async (t) => {
  const model = await loadModel(t, buildAddModel(2), ADD_CONFIG, 3)
  const all = await Promise.all(
    [0, 1, 2].map((instance) => executeOnce(model, [addRequest(1, instance)], instance)),
  )
  t.same(
    all.map(([response]) => fp32Values(response, 'sum')[0]),
    [100, 101, 102],
  )
  const [lost] = await executeOnce(model, [addRequest(1, 0)], 3)
  t.match(lost?.error, { reason: 'INTERNAL', message: /^bug: instance 3/ })
})

await t.test('closing waits for the execution that is under way', async (t) => {
  const model = await loadModel(t, buildAddModel(2), ADD_CONFIG)
  const running = executeOnce(model, [addRequest(1, 0)])
  await model.close()
  const [response] = await running
  t.ok(response?.error === undefined || response.error.reason === 'ENGINE_STOPPED')
  const [late] = await executeOnce(model, [addRequest(1, 0)])
  t.match(late?.error, { reason: 'ENGINE_STOPPED', code: 'UNAVAILABLE' })
  await model.close()
})

/** `w` multiplied with itself many times: some milliseconds. */
function longSpec() {
  const steps = Array.from({ length: 64 }, (_, i) => `step${i}`)
  const value = { type: 'FP32' as const, dims: [256, 256] }
  return {
    inputs: [{ name: 'w', ...value }],
    outputs: [{ name: 'step63', ...value }],
    operators: steps.map((name, i) => {
      return { op: 'MatMul', inputs: ['w', steps[i - 1] ?? 'w'], outputs: [name] }
    }),
  }
}

await t.test('a run ends when its callers have left', async (t) => {
  const model = await loadModel(
    t,
    buildOnnx(longSpec()),
    modelConfig([fp32Declared('w', [256, 256])], [fp32Declared('step63', [256, 256])]),
  )
  const request = stepRequest([
    fp32Tensor(
      'w',
      [256, 256],
      Array.from({ length: 65_536 }, () => 0),
    ),
  ])
  const caller = new AbortController()
  const sink = new RecordedResponses()
  const run = model.execute([{ request, sink }], { instance: 0, signal: caller.signal })
  caller.abort()
  await run
  t.match(sink.responses[0]?.error, { reason: 'ENGINE_FAILED', message: /terminate flag/ })
  const [next] = await executeOnce(model, [request])
  t.equal(next?.error, undefined, 'the next one does not')
})

await t.test('the collector frees no input of a run that is going on', async (t) => {
  const { inputs, operators } = longSpec()
  const x = { name: 'x', type: 'INT64' as const, dims: [512] }
  const bytes = buildOnnx({
    inputs: [...inputs, x],
    outputs: [{ ...x, name: 'y' }],
    operators: [
      ...operators,
      { op: 'ReduceSum', inputs: ['step63'], outputs: ['sum'], attributes: { keepdims: 0 } },
      { op: 'Cast', inputs: ['sum'], outputs: ['zero'], attributes: { to: 7 } },
      { op: 'Add', inputs: ['x', 'zero'], outputs: ['y'] },
    ],
  })
  const declared = { name: 'x', type: 'TYPE_INT64', dims: [512] } as const
  const config = modelConfig(
    [fp32Declared('w', [256, 256]), declared],
    [{ ...declared, name: 'y' }],
  )
  const model = await loadModel(t, bytes, config)
  const zeros = new Uint8Array(65_536 * 4)
  const numbers = new Uint8Array(BigInt64Array.from({ length: 512 }, (_, i) => BigInt(i)).buffer)
  const request = stepRequest([
    { name: 'w', datatype: 'FP32', shape: [256, 256], data: zeros },
    { name: 'x', datatype: 'INT64', shape: [512], data: numbers },
  ])
  const running = [0, 1, 2, 3].map(() => executeOnce(model, [request]))
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  if (typeof collect !== 'function') throw new Error('there is no garbage collector to call')
  const others: Uint8Array[] = []
  for (let i = 0; i < 3; i += 1) {
    collect()
    // Memory that it found is freed a little later, on a thread.
    await delay(1)
    // They take its place.
    for (let j = 0; j < 1000; j += 1) others.push(new Uint8Array(numbers.length).fill(0xee))
  }
  const responses = (await Promise.all(running)).flat()
  t.equal(others.length, 3000)
  for (const { outputs } of responses) {
    t.equal(Buffer.compare(outputs[0]?.data ?? new Uint8Array(0), numbers), 0)
  }
})

await t.test('a model is a file, or a directory with a file and its data', async (t) => {
  const directory = await writeModel(t, new Uint8Array(0), 'unused')
  await mkdir(join(directory, 'model.onnx'))
  await writeFile(join(directory, 'model.onnx', 'model.onnx'), buildAddModel(2))
  const engine = createOnnxEngine()
  const signature = await engine.inspect(join(directory, 'model.onnx'))
  t.equal(signature.batchable, true)
  const model = await engine.load(modelSource(directory, ADD_CONFIG), { instances: 1 })
  t.teardown(() => model.close())
  const [response] = await executeOnce(model, [addRequest(1, 0)])
  t.same(fp32Values(response, 'sum'), [100, 101])
})

await t.test('what cannot be loaded is refused with its reason', async (t) => {
  const log: unknown[] = []
  const engine = createOnnxEngine({
    log: { ...silentLogger, warn: (message, fields) => log.push({ message, ...fields }) },
    hostPolicies: new Map([['model', [0]]]),
  })
  const directory = await writeModel(t, buildAddModel(2))
  const pointer =
    'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n'
  await writeFile(join(directory, 'pointer.onnx'), pointer)
  const group = instanceGroup({ name: 'g0', kind: 'KIND_GPU', gpus: [0] })
  const level = {
    priority: 'PRIORITY_DEFAULT' as const,
    gather_kernel_buffer_threshold: 0,
    eager_batching: false,
  }
  const cases: { change: Partial<ModelConfig>; reason: string; text: RegExp }[] = [
    {
      change: { default_model_filename: 'absent.onnx' },
      reason: 'MODEL_LOAD_FAILED',
      text: /does not exist/,
    },
    {
      change: { default_model_filename: 'pointer.onnx' },
      reason: 'MODEL_LOAD_FAILED',
      text: /^model file '.*pointer\.onnx' is a pointer of Git LFS, want the file itself: run 'git lfs pull'/,
    },
    {
      change: { default_model_filename: '../x' },
      reason: 'MODEL_LOAD_FAILED',
      text: /outside the version/,
    },
    // With the provider it is the session that finds no device.
    ...(cudaProviderProblem() === undefined
      ? []
      : [
          {
            change: { instance_group: [group] },
            reason: 'DEVICE_UNAVAILABLE',
            text: /^instance group g0 of model m has kind KIND_GPU but no GPUs are available \(ONNX Runtime has no CUDA provider: .*step-cuda\)$/,
          },
        ]),
    {
      change: { parameters: { intra_op_thread_count: { string_value: 'two' } } },
      reason: 'MODEL_LOAD_FAILED',
      text: /got "two", want a number of threads/,
    },
    {
      change: { parameters: { execution_mode: { string_value: '2' } } },
      reason: 'MODEL_LOAD_FAILED',
      text: /got "2", want 0/,
    },
    {
      change: { parameters: { enable_mem_arena: { string_value: 'maybe' } } },
      reason: 'MODEL_LOAD_FAILED',
      text: /got "maybe", want 0 or 1/,
    },
    {
      change: { optimization: { ...level, graph: { level: 7 } } },
      reason: 'MODEL_LOAD_FAILED',
      text: /optimization.graph.level: got 7/,
    },
    {
      change: {
        optimization: {
          ...level,
          execution_accelerators: {
            gpu_execution_accelerator: [],
            cpu_execution_accelerator: [{ name: 'openvino', parameters: {} }],
          },
        },
      },
      reason: 'UNSUPPORTED',
      text: /execution_accelerators: accelerator "openvino" needs libonnxruntime_providers_openvino\.\w+, which ONNX Runtime 1\.\d+\.\d+ in \/.* lacks; want the folder of one that has it \(--backend-config=onnxruntime,library=FOLDER\)$/,
    },
    {
      change: { model_operations: { op_library_filename: ['x.so'] } },
      reason: 'UNSUPPORTED',
      text: /custom operators/,
    },
  ]
  for (const { change, reason, text } of cases) {
    await t.rejects(
      engine.load(modelSource(directory, { ...ADD_CONFIG, ...change }), { instances: 1 }),
      {
        reason,
        message: text,
      },
    )
  }
  const garbage = await writeModel(t, Buffer.from('nothing like a model'))
  await t.rejects(engine.load(modelSource(garbage, ADD_CONFIG), { instances: 1 }), {
    name: 'ServeError',
    reason: 'MODEL_LOAD_FAILED',
  })
  const unknown = buildOnnx({
    ...identitySpec('FP32'),
    operators: [{ op: 'NoSuchOperator', inputs: ['x'], outputs: ['y'] }],
  })
  const strange = await writeModel(t, unknown)
  await t.rejects(
    engine.load(
      modelSource(strange, modelConfig([fp32Declared('x', [-1])], [fp32Declared('y', [-1])])),
      {
        instances: 2,
      },
    ),
    { reason: 'MODEL_LOAD_FAILED', message: /^failed to load model 'm': .*NoSuchOperator/s },
  )
  const passedOn = {
    intra_op_thread_count: { string_value: '2' },
    'session.intra_op_thread_affinities': { string_value: 'bogus' },
  }
  await t.rejects(
    engine.load(modelSource(directory, { ...ADD_CONFIG, parameters: passedOn }), { instances: 1 }),
    { reason: 'MODEL_LOAD_FAILED', message: /must consist of only digits: bogus$/ },
  )
  const set = {
    'memory.enable_memory_arena_shrinkage': { string_value: 'cpu:0' },
    ...Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`p${i}`, { string_value: '' }])),
  }
  const loaded = await engine.load(modelSource(directory, { ...ADD_CONFIG, parameters: set }), {
    instances: 1,
  })
  await loaded.close()
  const others = Array.from(
    { length: 15 },
    (_, i) => `parameters["p${i}"]: the onnxruntime engine does not use it`,
  )
  const shrinkage = 'parameters["memory.enable_memory_arena_shrinkage"]'
  const settings = [`${shrinkage}: the onnxruntime engine does not use it`, ...others]
  t.same(log, [{ message: 'settings have no effect', model: 'm', settings, count: 21 }])
  const pinned = { ...ADD_CONFIG, instance_group: [instanceGroup({ kind: 'KIND_MODEL' })] }
  const onItsOwn = await engine.load(modelSource(directory, pinned), { instances: 1 })
  await onItsOwn.close()
  t.match(log[1], { settings: ['instance_group.host_policy'], count: 1 })
})

await t.test('the runtime does not report to its maker', async (t) => {
  const { directory, remove } = await writeModelFile(buildAddModel(2))
  t.teardown(remove)
  const model = await createOnnxEngine().load(modelSource(directory, ADD_CONFIG), { instances: 1 })
  t.teardown(() => model.close())
  // Where its reports are logged; an earlier process of this number may have left one.
  const log = statSync(`/tmp/mat-debug-${process.pid}.log`, { throwIfNoEntry: false })
  t.ok((log?.mtimeMs ?? 0) < performance.timeOrigin)
})
