import { createEngines } from '@tutti/backends'
import { buildAddModel, buildOnnx, identitySpec } from '@tutti/backends/testing'
import { createLogger } from '@tutti/chassis'
import type { NamedTensor } from '@tutti/tensor'
import t from 'tap'
import { openTestStep } from './testing/open-test-step.ts'
import { RecordingSink, requestContext } from './testing/step-builders.ts'

function fp32(name: string, rows: readonly (readonly number[])[]): NamedTensor {
  const data = new Uint8Array(new Float32Array(rows.flat()).buffer)
  return { name, datatype: 'FP32', shape: [rows.length, rows[0]?.length ?? 0], data }
}

await t.test(
  'an ONNX model without a configuration loads, warms up, batches and answers',
  async (t) => {
    const warmUp = `backend: "onnxruntime" max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 10000000 }
    model_warmup { name: "w" batch_size: 3
      inputs { key: "a" value: { data_type: TYPE_FP32 dims: 2 random_data: true } }
      inputs { key: "b" value: { data_type: TYPE_FP32 dims: 2 zero_data: true } } }
    model_warmup { name: "none" }`
    const lines: string[] = []
    const log = createLogger({ name: 'test', destination: { write: (line) => lines.push(line) } })
    const model = Buffer.from(buildAddModel(2))
    const directory = t.testdir({
      bare: { 1: { 'model.onnx': model } },
      warm: { 'config.pbtxt': warmUp, 1: { 'model.onnx': model } },
      broken: { 1: { 'model.onnx': 'this is not a model' } },
    })
    const step = await openTestStep([directory], { engines: createEngines(), log })
    t.teardown(() => step.close())
    const { models } = await step.control.describe()
    t.match(models, [
      { name: 'bare', config: { max_batch_size: 4, input: [{ name: 'a' }, { name: 'b' }] } },
      {
        name: 'broken',
        versions: [{ state: 'UNAVAILABLE', reason: /not a model|protobuf|ONNX/i }],
      },
      { name: 'warm', versions: [{ state: 'READY' }] },
    ])
    const told = lines.filter((line) => line.includes('warm-up')).map((line) => JSON.parse(line))
    t.match(told, [{ level: 'warn', model: 'warm', sample: 'none', why: /^its batch_size is 0/ }])
    t.match(
      await step.control.statistics('warm', ''),
      [{ executionCount: 0n }],
      'warm-up does not count',
    )

    const infer = async (name: string, row: readonly number[]): Promise<readonly number[]> => {
      const served = models.find((candidate) => candidate.name === name)?.versions[0]
      const inputs = [fp32('a', [row]), fp32('b', [[10, 20]])]
      const sink = new RecordingSink()
      const { version = 0, revision = '' } = served ?? {}
      const request = { context: requestContext(), requestedOutputs: [], inputs }
      const { signal } = new AbortController()
      step.executor({ model: name, version, revision }).execute(request, sink, { signal })
      await sink.all
      t.equal(sink.outcome, 'OK')
      const data = sink.responses[0]?.outputs[0]?.data ?? new Uint8Array()
      return [...new Float32Array(Uint8Array.from(data).buffer)]
    }
    const rows = Array.from({ length: 8 }, (_, i) => [i, -i])
    const sums = rows.map(([a = 0, b = 0]) => [a + 10, b + 20])
    t.same(await Promise.all(rows.map((row) => infer('warm', row))), sums)
    t.same(await Promise.all(rows.map((row) => infer('bare', row))), sums)
    const [statistics] = await step.control.statistics('warm', '')
    t.equal(statistics?.inferenceCount, 8n)
    t.equal(statistics?.executionCount, 2n, 'two batches of four')
  },
)

function classes(count: number) {
  return { 'model.onnx': Buffer.from(buildOnnx(identitySpec('FP32', ['N', count]))) }
}

await t.test('each version of an ONNX model has the shape that its file says', async (t) => {
  const all = 'backend: "onnxruntime" version_policy { all { } }'
  const directory = t.testdir({
    both: { 'config.pbtxt': all, 1: classes(3), 2: classes(5) },
    moved: { 1: { 'model.pt': 'of another backend' }, 2: classes(5) },
    retrained: { 1: { 'model.onnx': 'this is not a model' }, 2: classes(5) },
  })
  const step = await openTestStep([directory], { engines: createEngines() })
  t.teardown(() => step.close())
  const { models } = await step.control.describe()
  const dims = models.map(({ name, config, versions }) => [
    name,
    ...versions.map(({ version, state, reason, own }) => [
      version,
      state,
      reason,
      (own?.config ?? config)?.output[0]?.dims,
    ]),
  ])
  t.same(dims, [
    ['both', [1, 'READY', '', [3]], [2, 'READY', '', [5]]],
    ['moved', [2, 'READY', '', [5]]],
    ['retrained', [2, 'READY', '', [5]]],
  ])
})
