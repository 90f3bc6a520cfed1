import { parsedEnsemble } from '@tutti/api/testing'
import t from 'tap'
import { modelConfig } from '../testing/configs.ts'
import { readValidManifest } from './read-manifest.ts'

type Spec = Readonly<Record<string, unknown>>

const step = (name: string, inputMap: Spec, more: Spec = {}) => ({
  name,
  modelRef: { name: `model_${name}` },
  inputMap,
  ...more,
})
const convert = (spec: Spec, models?: Parameters<typeof readValidManifest>[1]) =>
  readValidManifest(parsedEnsemble('e', spec), models)
const stepsOf = (spec: Spec, models?: Parameters<typeof readValidManifest>[1]) =>
  convert(spec, models).config.ensemble_scheduling?.step.map(({ input_map, output_map }) => [
    input_map,
    output_map,
  ])

await t.test('a reference is a declared tensor, else the output of a step', async (t) => {
  t.same(
    stepsOf({
      steps: [
        step('a', { i: 'x' }, { outputMap: { o: 'middle' } }),
        step('b', { i: 'middle', 'k:0': 'a.o', j: 'a.p.q' }),
      ],
      outputs: [{ name: 'y', from: 'b.feature/Conv.7:0' }],
    }),
    [
      [{ i: 'x' }, { o: 'middle', 'p.q': 'a.p.q' }],
      [{ i: 'middle', 'k:0': 'middle', j: 'a.p.q' }, { 'feature/Conv.7:0': 'y' }],
    ],
  )
})

await t.test('an output names its tensor, and another of that name gives way', async (t) => {
  t.same(
    stepsOf({
      steps: [
        step('a', { i: 'x' }, { outputMap: { o: 'p', q: 'y' } }),
        step('b', { i: 'p', j: 'y' }, { outputMap: { o: 'z' } }),
      ],
      outputs: [
        { name: 'y', from: 'p' },
        { name: 'z', from: 'z' },
      ],
    }),
    [
      [{ i: 'x' }, { o: 'y', q: 'y#2' }],
      [{ i: 'y', j: 'y#2' }, { o: 'z' }],
    ],
  )
})

await t.test(
  'a step may write onto the name of an input: steps read the request’s, outputs what was written',
  async (t) => {
    t.same(
      stepsOf({
        steps: [step('a', { i: 'x' }, { outputMap: { o: 'x' } }), step('b', { i: 'x' })],
        outputs: [
          { name: 'x', from: 'x' },
          { name: 'y', from: 'b.o' },
        ],
      }),
      [
        [{ i: 'x' }, { o: 'x' }],
        [{ i: 'x' }, { o: 'y' }],
      ],
    )
  },
)

const named = (name: string, inputs: readonly string[], outputs: readonly string[]) =>
  modelConfig({
    name,
    input: inputs.map((input) => ({ name: input })),
    output: outputs.map((output) => ({ name: output, dims: [2, 3] })),
  })

const shorthand = (inputs: readonly string[], inputMap?: Spec) => ({
  steps: [
    step('a', { i: 'x' }),
    { name: 'b', modelRef: { name: 'model_b' }, inputs, ...(inputMap && { inputMap }) },
  ],
  outputs: [{ name: 'y', from: 'b.o' }],
})

await t.test('the shorthand feeds inputs of the same name', async (t) => {
  const models = new Map(
    [named('model_a', ['i'], ['p', 'q', 'r']), named('model_b', ['p', 'q', 's'], ['o'])].map(
      (m) => [m.name, m],
    ),
  )
  const find = (name: string) => models.get(name)
  const both = { p: 'a.p', q: 'a.q' }
  t.same(stepsOf(shorthand(['a']), find)?.[1]?.[0], both)
  t.same(stepsOf(shorthand(['a.p', 'a.q']))?.[1]?.[0], both, 'without a look at the models')
  t.same(stepsOf(shorthand(['a'], { p: 'x' }), find)?.[1]?.[0], { p: 'x', q: 'a.q' })
  t.throws(() => convert(shorthand(['a'])), {
    message: /^steps\[1\]\(b\)\.inputs\[0\]: .*not known yet/,
  })
  t.throws(() => convert(shorthand(['x'])), {
    message:
      "steps[1](b).inputs[0]: 'x' is an ensemble tensor, and inputs names steps or STEP.OUTPUT; want it in inputMap: {INPUT: x}, with the name of the model's input",
  })
  t.throws(() => convert(shorthand(['z'])), {
    message: /^steps\[1\]\(b\)\.inputs\[0\]: no step 'z'/,
  })
  t.throws(() => convert(shorthand(['a.p'], { p: 'x' })), {
    message: /'p' is fed by .*inputMap\[p\] already/,
  })
})

await t.test('an output without a type has that of its tensor', async (t) => {
  const spec = { steps: [step('a', { i: 'x' })], outputs: [{ name: 'y', from: 'a.o' }] }
  const outputs = (maxBatchSize: number, config = named('model_a', ['i'], ['o'])) =>
    convert(spec, () => ({ ...config, max_batch_size: maxBatchSize })).config.output
  t.match(outputs(0), [{ name: 'y', data_type: 'TYPE_FP32', dims: [2, 3] }])
  t.match(outputs(8), [{ dims: [-1, 2, 3] }], 'an ensemble without batches shows that of the model')
  t.match(convert(spec).config.output, [{ data_type: 'TYPE_INVALID', dims: [] }])
})

await t.test('the graph has what config.pbtxt has no words for', async (t) => {
  const { graph } = convert({
    steps: [
      step('a', { i: 'x' }),
      step('b', { i: 'x' }, { dependsOn: ['a'], hedge: { after: '1s500ms' }, timeout: '300ms' }),
      step('c', { i: 'x' }, { hedge: { after: '5ms', maxPercent: 50 } }),
    ],
    outputs: ['a', 'b', 'c'].map((name) => ({ name, from: `${name}.o` })),
    timeout: '1m',
    maxInFlightRequests: 3,
  })
  t.match(graph, { timeoutMs: 60_000, maxInFlightRequests: 3 })
  t.same(
    graph.steps.map(({ name, after, call }) => [name, after, call]),
    [
      ['a', [], undefined],
      ['b', [0], { timeoutMs: 300, hedge: { afterMs: 1500, maxPercent: 5 } }],
      ['c', [], { hedge: { afterMs: 5, maxPercent: 50 } }],
    ],
  )
})

await t.test('versions, batches and optional inputs are carried over', async (t) => {
  const { config } = convert({
    modelName: 'E_1',
    maxBatchSize: 4,
    inputs: [{ name: 'x', datatype: 'BYTES', shape: [-1], optional: true }],
    steps: [{ name: 'a', modelRef: { name: 'm', version: 3 }, inputMap: { x: 'x' } }],
  })
  t.match(config, {
    name: 'E_1',
    max_batch_size: 4,
    input: [{ name: 'x', data_type: 'TYPE_STRING', optional: true }],
    ensemble_scheduling: { step: [{ model_name: 'm', model_version: 3 }] },
  })
})

await t.test('what cannot be resolved is refused with its place and a hint', async (t) => {
  const twice = [
    { name: 'y', from: 'a.o' },
    { name: 'z', from: 'a.o' },
  ]
  const a = step('a', { i: 'x' })
  const cases: [Spec, string][] = [
    [
      { steps: [step('a', { i: 'xx' })] },
      "steps[0](a).inputMap[i]: no ensemble tensor 'xx'; there is 'x'",
    ],
    [
      { steps: [step('a', { x: 'i' })] },
      "steps[0](a).inputMap[x]: no ensemble tensor 'i', but 'x' is one: inputMap goes from the model's input to the tensor that feeds it; want {i: x}",
    ],
    [
      { outputs: [{ name: 'y', from: 'detecter.o' }], steps: [step('detector', { i: 'x' })] },
      "outputs[0].from: 'detecter.o': no ensemble tensor of that name and no step 'detecter'; did you mean 'detector'?",
    ],
    [
      { outputs: [{ name: 'y', from: 'a' }], steps: [a] },
      "outputs[0].from: got the step 'a', want one of its outputs, e.g. 'a.OUTPUT'",
    ],
    [
      { steps: [step('a', { i: 'x' }, { dependsOn: ['b'] })] },
      "steps[0](a).dependsOn[0]: no step 'b'; there is 'a'",
    ],
    [
      { steps: [step('a', { i: 'x' }, { dependsOn: ['a'] })] },
      "steps[0](a).dependsOn[0]: the step 'a' would wait for itself",
    ],
    [
      {
        steps: [
          step('a', { i: 'x' }, { outputMap: { o: 't' } }),
          step('b', { i: 'x' }, { outputMap: { o: 't' } }),
        ],
      },
      "steps[1](b).outputMap[o]: 't' is what steps[0](a).outputMap[o] makes; want another name",
    ],
    [
      {
        inputs: [{ name: 'a.o', datatype: 'FP32', shape: [1] }],
        steps: [step('a', { i: 'a.o' })],
      },
      "steps[0](a).inputMap[i]: 'a.o' is an ensemble tensor and may be the output 'o' of the step 'a'; want another name for one of them",
    ],
    [
      {
        steps: [a, step('b', { i: 'c.o' }), step('c', { i: 'b.o' })],
        outputs: [{ name: 'y', from: 'a.o' }],
      },
      'steps[1](b): steps wait for one another: b -> c -> b',
    ],
    [
      { steps: [a, step('b', { i: 'a.o' })], outputs: [{ name: 'y', from: 'a.o' }] },
      'steps[1](b): nothing reads what it makes; want one of its outputs in `outputs` or read by a step, or no such step',
    ],
    [
      { steps: [a], outputs: twice },
      "outputs[1].from: the tensor is the output 'y' already; want each tensor once",
    ],
    [
      { steps: [a], outputs: [{ name: 'y', from: 'x' }] },
      "outputs[0].from: an input is given out under its own name only: got 'y' for 'x'; want a step that copies it",
    ],
    [
      {
        inputs: ['x', 'u'].map((name) => ({ name, datatype: 'FP32', shape: [1] })),
        steps: [a],
        outputs: [{ name: 'y', from: 'a.o' }],
      },
      "inputs[1](u): no step reads 'u'; want it read, or removed",
    ],
    [
      {
        steps: [a, step('b', { i: 'a.o' })],
        outputs: [
          { name: 'x', from: 'a.o' },
          { name: 'y', from: 'b.o' },
        ],
      },
      "steps[1](b).inputMap[i]: what steps[0](a) makes has the name of the input 'x', so that steps[1](b) cannot read it; want another name",
    ],
  ]
  for (const [spec, message] of cases) {
    t.throws(() => convert(spec), { reason: 'ENSEMBLE_INVALID', message }, message)
  }
})
