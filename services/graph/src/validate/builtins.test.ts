import { parsedEnsemble } from '@tutti/api/testing'
import t from 'tap'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { modelConfig } from '../testing/configs.ts'
import { checkEnsemble, type EnsembleCheck } from './check-manifest.ts'

const scorer = modelConfig({
  name: 'scorer',
  max_batch_size: 8,
  input: [{ name: 'pixels', dims: [3, 4, 4] }],
  output: [
    { name: 'logits', dims: [10] },
    { name: 'boxes', dims: [-1, 4] },
  ],
})

const whole = modelConfig({ ...scorer, name: 'whole', platform: 'ensemble' })

type Fields = Readonly<Record<string, unknown>>

const PICTURE = [{ name: 'image', datatype: 'UINT8', shape: [-1, -1, 3] }]
const SCALE = {
  name: 'scale',
  builtin: { name: 'resize', width: 4, height: 4 },
  inputMap: { image: 'image' },
}
const NORM = {
  name: 'norm',
  builtin: { name: 'normalise', mean: [0, 0, 0], layout: 'CHW' },
  inputMap: { image: 'scale.image' },
}
const SCORE = { name: 'score', modelRef: { name: 'scorer' }, inputMap: { pixels: 'norm.image' } }
const BEST = { name: 'best', builtin: { name: 'softmax' }, inputMap: { input: 'score.logits' } }

function check(steps: readonly Fields[], spec: Fields = {}): EnsembleCheck {
  const outputs = [{ name: 'out', from: `${String(steps.at(-1)?.['name'])}.output` }]
  const manifest = parsedEnsemble('e', { inputs: PICTURE, outputs, steps, ...spec })
  return checkEnsemble(manifest, {
    lookup: (name) => {
      const config = [scorer, whole].find((one) => one.name === name)
      return config === undefined ? 'unknown' : { config, readyVersions: [1] }
    },
  })
}

const cut = (name: string, index: string): Fields => {
  return { name, builtin: { name: 'slice', index }, inputMap: { input: 'score.logits' } }
}
/** The beginning of the text of a fault. */
const at = (step: string, path: string): string => `BuiltinInvalid steps[${step}${path}`

/** Says what is wrong, or the types of the outputs. */
function say(...asked: Parameters<typeof check>): readonly string[] {
  const found = check(...asked)
  if (found.accepted) {
    return found.config.output.map(
      ({ name, data_type: type, dims }) => `${name} ${type} ${dims.join()}`,
    )
  }
  return [found, ...(found.others ?? [])].map(({ reason, message }) => `${reason} ${message}`)
}

const stepOf = (builtin: Fields) => [{ name: 'a', builtin, inputMap: { input: 'x' } }]
const lostBatch = (dims: string): string =>
  `ShapeMismatch outputs[0](out).from: got 'a.output' of the dims ${dims}, want the rows of the batch as the first dimension ([-1,...]), and one more`

await t.test('outputs of an Ensemble with batches keep the rows', async (t) => {
  const inputs = [{ name: 'x', datatype: 'FP32', shape: [4, 5] }]
  const batches = { inputs, maxBatchSize: 4 }
  const rows = { name: 'reduce', op: 'mean', axes: [0] }
  t.same(say(stepOf(rows), batches), [lostBatch('[4,5]')])
  t.same(say(stepOf({ name: 'transpose', axes: [1, 0, 2] }), batches), [lostBatch('[4,-1,5]')])
  t.same(say(stepOf({ ...rows, axes: [1, 2] }), batches), [lostBatch('[-1]')])
  t.same(say(stepOf({ ...rows, axes: [1] }), batches), ['out TYPE_FP32 5'])
  t.same(say(stepOf(rows), { inputs }), ['out TYPE_FP32 5'], 'without batches it is any dimension')
})

await t.test('tensors get their types through built-ins', async (t) => {
  const batches = { maxBatchSize: 4 }
  t.same(say([SCALE, NORM, SCORE, BEST]), ['out TYPE_FP32 -1,10'], 'a model that batches')
  t.same(say([SCALE, NORM, SCORE, BEST], batches), ['out TYPE_FP32 10'], 'batches as rows')
  const typed = [{ name: 'out', from: 'best.output', datatype: 'FP32', shape: [10] }]
  t.same(say([SCALE, NORM, SCORE, BEST], { ...batches, outputs: typed }), ['out TYPE_FP32 10'])
  t.same(
    say([SCALE, { ...NORM, inputMap: undefined, inputs: ['scale'] }, SCORE, BEST]),
    ['out TYPE_FP32 -1,10'],
    'inputs of the same name',
  )
  const each = {
    name: 'each',
    builtin: { name: 'softmax' },
    forEach: { items: { input: 'score.boxes' }, maxItems: 9 },
  }
  t.same(say([SCALE, NORM, SCORE, each]), ['out TYPE_FP32 -1,-1,4'], 'one for each item')
  const constant = {
    name: 'sum',
    builtin: { name: 'arithmetic', op: 'add' },
    inputMap: { input: 'score.logits' },
    constants: { other: { datatype: 'FP32', value: [1] } },
  }
  t.same(say([SCALE, NORM, SCORE, constant]), ['out TYPE_FP32 -1,10'], 'a constant')
  const either = {
    name: 'any',
    builtin: { name: 'softmax' },
    firstOf: { input: ['a.output', 'b.output'] },
  }
  const when = 'tensors["score.logits"][0] > 0.5'
  t.same(
    say([SCALE, NORM, SCORE, { ...cut('a', ':, 1:3'), when }, cut('b', ':, 1:4'), either]),
    ['out TYPE_FP32 -1,-1'],
    'the first of two with different extents',
  )
})

await t.test('what does not fit is refused where it stands', async (t) => {
  const cases: readonly (readonly [readonly Fields[], string])[] = [
    [
      [{ ...SCALE, builtin: { name: 'resise', width: 4 } }],
      at(
        '0](scale)',
        `.builtin.name: got "resise", want the name of a built-in: did you mean resize?`,
      ),
    ],
    [
      [{ ...SCALE, builtin: { name: 'resize', width: 'wide' } }],
      at('0](scale)', '.builtin.width: got "wide", want a finite number'),
    ],
    [
      [{ ...SCALE, builtin: { name: 'resize', wide: 4, width: 4, height: 4 } }],
      at('0](scale)', '.builtin.wide: '),
    ],
    [
      [SCALE, { ...NORM, inputMap: { picture: 'scale.image' } }],
      at('1](norm)', `: the input 'image': got none, want a tensor`),
    ],
    [
      [SCALE, { ...NORM, inputMap: { image: 'scale.image', other: 'scale.size' } }],
      at('1](norm)', `.inputMap[other]: the input 'other': got a tensor, want the one input image`),
    ],
    [
      [SCALE, { ...NORM, inputMap: { image: 'scale.size' } }],
      at('1](norm)', `.inputMap[image]: the input 'image': got dims [2], want 3 to 8 dimensions`),
    ],
    [
      [{ ...SCALE, name: 'decode', builtin: { name: 'imageDecode' }, inputMap: { data: 'image' } }],
      at('0](decode)', `.inputMap[data]: the input 'data': got `),
    ],
    [
      [
        {
          ...BEST,
          builtin: { name: 'labelLookup', file: 'labels.txt' },
          inputMap: { indexes: 'image' },
        },
      ],
      at(
        '0](best)',
        '.builtin.model: got none, want the served name of the Model in whose directory the file is',
      ),
    ],
    [
      [
        SCALE,
        {
          ...BEST,
          builtin: { name: 'labelLookup', labels: Array.from({ length: 9000 }, () => 'a label') },
          inputMap: { indexes: 'scale.size' },
        },
      ],
      at('1](best)', '.builtin: got options of '),
    ],
    [
      [
        SCALE,
        {
          ...BEST,
          builtin: { name: 'softmax', model: 'missing' },
          inputMap: { input: 'scale.scale' },
        },
      ],
      `UnknownModel steps[1](best).builtin.model: no Model or Ensemble serves 'missing'`,
    ],
    [
      [{ ...SCALE, builtin: { ...SCALE.builtin, model: 'whole' } }],
      `UnknownModel steps[0](scale).builtin.model: 'whole' is an Ensemble; want a Model, in whose`,
    ],
    [
      [{ ...SCALE, onError: { fallback: { modelRef: { name: 'scorer' } } } }],
      `steps[0](scale).onError.fallback`,
    ],
  ]
  for (const [steps, text] of cases) {
    const outputs = [{ name: 'output', from: `${String(steps.at(-1)?.['name'])}.image` }]
    const said = say(steps, { outputs })
    t.ok(
      said.some((one) => one.includes(text)),
      `${text} is in ${said.join(' | ')}`,
    )
  }
})

await t.test('steps that wait for one another have no types, and end', async (t) => {
  const first = { ...BEST, name: 'a', inputMap: { input: 'b.output' } }
  const second = { ...BEST, name: 'b', inputMap: { input: 'a.output' } }
  t.match(say([first, second], { inputs: [{ name: 'x', datatype: 'FP32', shape: [1] }] }), [
    /UnusedInput/,
    /CycleDetected steps\[0\]\(a\)/,
  ])
})

await t.test('a built-in is planned with its text, and may run twice', async (t) => {
  const retried = { ...BEST, retry: { maxRetries: 2, retryOn: ['INTERNAL'] } }
  const found = check([SCALE, NORM, SCORE, retried])
  if (!found.accepted) throw new Error(found.message)
  const { config, graph } = found
  const plan = planEnsemble({
    config,
    graph,
    lookup: () => ({ config: scorer, readyVersions: [1] }),
  })
  t.same(
    plan.steps.map(({ model, builtin }) => [model, builtin && JSON.parse(builtin.text).name]),
    [
      ['/builtins', 'resize'],
      ['/builtins', 'normalise'],
      ['scorer', undefined],
      ['/builtins', 'softmax'],
    ],
  )
  const retry = { maxRetries: 2, retryOn: ['UNAVAILABLE'], backoffMs: 10 }
  t.same(plan.steps[0]?.call, { retry, mayRunTwice: true }, 'as often as replicas are lost')
  t.same(JSON.parse(plan.steps[3]?.builtin?.text ?? ''), {
    name: 'softmax',
    options: { axis: -1 },
    inputs: [['input', 'FP32', [-1, 10]]],
  })
  t.equal(plan.steps[3]?.call.mayRunTwice, true)
  t.same(
    config.ensemble_scheduling?.step.map(({ model_name: name }) => name),
    ['builtin:resize', 'builtin:normalise', 'scorer', 'builtin:softmax'],
    'the configuration that clients get',
  )
})
