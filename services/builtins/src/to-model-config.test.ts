import type { ModelConfig } from '@tutti/model-config'
import { parseModelConfig, printModelConfig } from '@tutti/model-config'
import t from 'tap'
import { buildModel, builtinOf } from './builtin-of.ts'
import { parseBuiltin } from './parse-builtin.ts'
import type { FeedingTensor } from './ports.ts'
import { type BuiltinConfig, toModelConfig } from './to-model-config.ts'

function configOf(given: object, inputs: Readonly<Record<string, FeedingTensor>>): BuiltinConfig {
  const { step, faults } = parseBuiltin(given)
  if (step === undefined) throw new Error(JSON.stringify(faults))
  return toModelConfig(step, { modelName: 'front.norm', inputs: new Map(Object.entries(inputs)) })
}

const IMAGE = { image: { datatype: 'UINT8', dims: [-1, -1, -1] } } as const

await t.test('a step is a model, whose configuration has all that its engine needs', async (t) => {
  const given = { name: 'normalise', mean: [1, 2, 3], layout: 'CHW' }
  const { config } = configOf(given, IMAGE)
  t.match(config, {
    name: 'front.norm',
    backend: 'builtin',
    max_batch_size: 0,
    input: [{ name: 'image', data_type: 'TYPE_UINT8', dims: [-1, -1, 3] }],
    output: [{ name: 'image', data_type: 'TYPE_FP32', dims: [3, -1, -1] }],
    instance_group: [{ kind: 'KIND_CPU', count: 2 }],
    parameters: {
      builtin: {
        string_value:
          '{"name":"normalise","options":{"datatype":"FP32","inputLayout":"HWC","layout":"CHW","mean":[1,2,3],"scale":1,"std":[1]}}',
      },
    },
  })
  const printed = printModelConfig(config ?? ({} as ModelConfig))
  t.same(parseModelConfig(printed, 'config.pbtxt'), config, 'survives config.pbtxt')
  const found = config && builtinOf(config)
  t.match(found, { builtin: { name: 'normalise' }, options: { mean: [1, 2, 3] } })
  t.ok(found && buildModel(found).byteLength > 100)
})

await t.test('the order of the options changes nothing', async (t) => {
  const one = configOf({ name: 'normalise', scale: 2, mean: [1] }, IMAGE)
  t.same(configOf({ mean: [1], name: 'normalise', scale: 2 }, IMAGE), one)
})

await t.test('inputs that do not fit are faults', async (t) => {
  const normalise = { name: 'normalise', mean: [1, 2, 3] }
  for (const [inputs, fault] of [
    [{}, { path: 'inputs.image', got: 'none', want: 'a tensor' }],
    [
      { image: { datatype: 'BYTES', dims: [1] } },
      { path: 'inputs.image', got: 'BYTES', want: /^one of FP16, FP32, / },
    ],
    [
      { image: { datatype: 'UINT8', dims: [4, 4] } },
      { path: 'inputs.image', got: 'dims [4,4]', want: '3 to 8 dimensions' },
    ],
    [
      { image: { datatype: 'UINT8', dims: [4, 4, 4] } },
      { path: 'inputs.image', got: 'dims [4,4,4]', want: 'dims that end in [-1,-1,3]' },
    ],
    [
      { ...IMAGE, imag: IMAGE.image },
      {
        path: 'inputs.imag',
        got: 'a tensor',
        want: 'the one input image; did you mean image?',
      },
    ],
  ] as const) {
    t.match(configOf(normalise, inputs), { config: undefined, faults: [fault] })
  }
})

await t.test('what depends on unknown tensors is not known, and no fault', async (t) => {
  for (const image of [{}, { datatype: 'UINT8' }, { dims: [1, 2, 3] }] as const) {
    t.same(configOf({ name: 'normalise' }, { image }), { faults: [] })
  }
  const known = { image: { datatype: 'BYTES' } } as const
  t.equal(configOf({ name: 'normalise' }, known).faults.length, 1, 'as far as it is known')
})

await t.test(
  'another configuration is no built-in, and one that does not fit is a bug',
  async (t) => {
    const { config } = configOf({ name: 'normalise' }, IMAGE)
    if (config === undefined) throw new Error('there is no configuration')
    t.equal(builtinOf({ ...config, backend: 'onnxruntime' }), undefined)
    t.throws(
      () => builtinOf({ ...config, parameters: {} }),
      /bug: the configuration of built-in step/,
    )
    t.throws(() => builtinOf({ ...config, input: [] }), /bug: the configuration of built-in step/)
  },
)
