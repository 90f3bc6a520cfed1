import * as fc from 'fast-check'
import t from 'tap'
import { FACE_ENSEMBLE } from '../testing/published-configs.ts'
import { emptyModelConfig, parseModelConfig } from '../text/parse-model-config.ts'
import { type NormaliseOptions, normaliseModelConfig } from './normalise-model-config.ts'

const normalise = (text: string, gpuCount?: number) =>
  normaliseModelConfig(
    parseModelConfig(`name: "m" ${text}`, 'config.pbtxt'),
    gpuCount === undefined ? {} : { gpuCount },
  )

const groups = (text: string, gpuCount?: number) =>
  normalise(text, gpuCount).instance_group.map(({ name, kind, count, gpus }) => ({
    name,
    kind,
    count,
    gpus,
  }))

await t.test('a config without anything gets the defaults', async (t) => {
  const config = normaliseModelConfig(emptyModelConfig('m'))
  t.same(config.version_policy, { latest: { num_versions: 1 } })
  t.same(config.optimization, {
    priority: 'PRIORITY_DEFAULT',
    input_pinned_memory: { enable: true },
    output_pinned_memory: { enable: true },
    gather_kernel_buffer_threshold: 0,
    eager_batching: false,
  })
  t.same(groups(''), [{ name: 'm', kind: 'KIND_CPU', count: 1, gpus: [] }])
})

await t.test('what is given stays', async (t) => {
  const config = normalise(
    'version_policy { all {} } optimization { graph { level: 1 } input_pinned_memory {} }',
  )
  t.same(config.version_policy, { all: {} })
  t.same(config.optimization?.graph, { level: 1 })
  t.same(config.optimization?.input_pinned_memory, { enable: false })
  t.same(config.optimization?.output_pinned_memory, { enable: true })
})

await t.test('dynamic batching gets the maximum batch size as the preferred one', async (t) => {
  const cases = [
    { text: 'max_batch_size: 8 dynamic_batching {}', sizes: [8] },
    { text: 'max_batch_size: 8 dynamic_batching { preferred_batch_size: 2 }', sizes: [2] },
    { text: 'dynamic_batching {}', sizes: [] },
  ]
  for (const { text, sizes } of cases) {
    t.same(normalise(text).dynamic_batching?.preferred_batch_size, sizes)
  }
})

await t.test('instance groups get name, kind, count and GPUs', async (t) => {
  t.same(groups('backend: "onnxruntime"'), [{ name: 'm', kind: 'KIND_CPU', count: 2, gpus: [] }])
  t.same(groups('backend: "python"', 2), [{ name: 'm', kind: 'KIND_CPU', count: 1, gpus: [] }])
  t.same(groups('instance_group [{ count: 3 }, { name: "g" kind: KIND_MODEL }, {}]'), [
    { name: 'm_0', kind: 'KIND_CPU', count: 3, gpus: [] },
    { name: 'g', kind: 'KIND_MODEL', count: 1, gpus: [] },
    { name: 'm_2', kind: 'KIND_CPU', count: 1, gpus: [] },
  ])
  t.same(groups('instance_group { kind: KIND_GPU }', 2), [
    { name: 'm_0', kind: 'KIND_GPU', count: 1, gpus: [0, 1] },
  ])
  t.same(groups('instance_group { kind: KIND_GPU gpus: 1 }', 2)[0]?.gpus, [1])
  t.same(groups('instance_group { gpus: 5 }', 2)[0]?.kind, 'KIND_GPU', 'it names one')
})

const kinds = (text: string, o: NormaliseOptions) =>
  normaliseModelConfig(parseModelConfig(`name: "m" ${text}`, 'config.pbtxt'), o).instance_group.map(
    ({ kind, count, gpus }) => [kind, count, gpus],
  )

await t.test('who knows what was asked for says what KIND_AUTO means', async (t) => {
  const onnx = 'backend: "onnxruntime"'
  t.same(kinds(onnx, { autoKind: 'KIND_GPU' }), [['KIND_GPU', 1, []]], 'GPUs that are not there')
  t.same(kinds(onnx, { autoKind: 'KIND_GPU', gpuCount: 2 }), [['KIND_GPU', 1, [0, 1]]])
  t.same(kinds(onnx, { autoKind: 'KIND_CPU', gpuCount: 2 }), [['KIND_CPU', 2, []]])
  const groups = `${onnx} instance_group [{ kind: KIND_CPU }, { kind: KIND_GPU }, { gpus: 5 }]`
  t.same(kinds(groups, { autoKind: 'KIND_GPU', gpuCount: 1 }), [
    ['KIND_CPU', 2, []],
    ['KIND_GPU', 1, [0]],
    ['KIND_GPU', 1, [5]],
  ])
  t.same(kinds(`${onnx} instance_group [{ gpus: 1 }, {}]`, { autoKind: 'KIND_CPU' }), [
    ['KIND_GPU', 1, [1]],
    ['KIND_CPU', 2, []],
  ])
})

await t.test('an ensemble gets no instance group and no optimization', async (t) => {
  const ensemble = parseModelConfig(FACE_ENSEMBLE, 'config.pbtxt')
  t.same(normaliseModelConfig(ensemble), {
    ...ensemble,
    version_policy: { latest: { num_versions: 1 } },
  })
})

const PARTS = fc.subarray([
  'max_batch_size: 8',
  'backend: "onnxruntime"',
  'instance_group [{ }, { kind: KIND_GPU }, { kind: KIND_AUTO gpus: 1 }]',
  'optimization { eager_batching: true }',
  'version_policy { }',
  'parameters { key: "a" }',
])
const SCHEDULERS = fc.constantFrom(
  '',
  'dynamic_batching {}',
  'sequence_batching { oldest {} }',
  'ensemble_scheduling {}',
)

await t.test('to normalise twice is to normalise once', async (t) => {
  fc.assert(
    fc.property(PARTS, SCHEDULERS, fc.nat(3), (parts, scheduler, gpuCount) => {
      const text = `name: "m" ${parts.join(' ')} ${scheduler}`
      const config = parseModelConfig(text, 'config.pbtxt')
      const before = structuredClone(config)
      const once = normaliseModelConfig(config, { gpuCount })
      const isUntouched = JSON.stringify(config) === JSON.stringify(before)
      const twice = normaliseModelConfig(once, { gpuCount })
      return isUntouched && JSON.stringify(twice) === JSON.stringify(once)
    }),
  )
  t.pass('held for every config tried')
})
