import { parsedEnsemble } from '@tutti/api/testing'
import { type ModelConfig, parseModelConfig } from '@tutti/model-config'
import t from 'tap'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { ensembleConfig, modelConfig, stepConfig } from '../testing/configs.ts'
import { checkEnsemble } from './check-manifest.ts'

const detector = modelConfig({
  name: 'detector',
  input: [{ name: 'image', dims: [-1] }],
  output: [
    { name: 'boxes', dims: [-1, 4] },
    { name: 'scores', dims: [-1] },
    { name: 'count', data_type: 'TYPE_INT32', dims: [1] },
    { name: 'wide', dims: [65] },
  ],
})
const reader = modelConfig({
  name: 'reader',
  max_batch_size: 8,
  input: [
    { name: 'box', dims: [4] },
    { name: 'bias', dims: [1], optional: true },
  ],
  output: [
    { name: 'text', data_type: 'TYPE_STRING', dims: [1] },
    { name: 'next', dims: [4] },
    { name: 'score', dims: [] },
  ],
})
const failing = modelConfig({
  name: 'failing',
  input: [{ name: 'box', dims: [4] }],
  output: [
    { name: 'failed', dims: [1] },
    { name: 'lengths', dims: [1] },
  ],
})
const nested = ensembleConfig({
  name: 'nested',
  input: [{ name: 'box', dims: [4] }],
  output: [{ name: 'text', dims: [1] }],
  steps: [stepConfig('reader', { box: 'box' }, { text: 'text' })],
})
const decoupled: ModelConfig = {
  ...reader,
  name: 'decoupled',
  model_transaction_policy: { decoupled: true },
}
const sequential: ModelConfig = {
  ...parseModelConfig('name: "sequential" sequence_batching { }', 'config.pbtxt'),
  input: reader.input,
  output: reader.output,
}
const CONFIGS = new Map(
  [detector, reader, failing, nested, decoupled, sequential].map((one) => [one.name, one]),
)

/** An input that a loop can begin with. */
const BOX = { name: 'image', datatype: 'FP32', shape: [4] }

type Fields = Readonly<Record<string, unknown>>

const ITEMS = { items: { box: 'det.boxes' }, maxItems: 64 }
const TEXT = { datatype: 'BYTES', value: ['?'] }
const NEXT = { datatype: 'FP32', value: [0, 0, 0, 0] }
const LOOP = { carry: { box: 'read.next' }, maxIterations: 5 }

/** Checks an Ensemble that detects, and then runs the step `read` with these fields. `model` is there beside the others. */
function check(read: Fields, spec: Fields = {}, model: ModelConfig = reader) {
  const detect = { name: 'det', modelRef: { name: 'detector' }, inputMap: { image: 'image' } }
  const names = ['boxes', 'scores', 'count', 'wide']
  const manifest = parsedEnsemble('e', {
    inputs: [{ name: 'image', datatype: 'FP32', shape: [-1] }],
    steps: [detect, { name: 'read', modelRef: { name: 'reader' }, ...read }],
    ...spec,
    outputs: [
      ...names.map((name) => ({ name, from: `det.${name}` })),
      ...((spec['outputs'] as Fields[] | undefined) ?? [{ name: 'text', from: 'read.text' }]),
    ],
  })
  return checkEnsemble(manifest, {
    lookup: (name) => {
      const config = name === model.name ? model : CONFIGS.get(name)
      return config === undefined ? 'unknown' : { config, readyVersions: [1] }
    },
  })
}

/** Lists what is wrong. */
function faults(...asked: Parameters<typeof check>): readonly string[] {
  const found = check(...asked)
  if (found.accepted) return []
  return [found, ...(found.others ?? [])].map(({ reason, message }) => `${reason} ${message}`)
}

/** Lists the outputs of an accepted Ensemble behind those of the detector. */
function outputs(...asked: Parameters<typeof check>): readonly string[] {
  const found = check(...asked)
  if (!found.accepted) return [found.message]
  const made = found.config.output.slice(4)
  return made.map(({ name, data_type: type, dims }) => `${name} ${type} ${dims.join()}`)
}

const given = (...names: string[]) => ({
  outputs: names.map((name) => ({ name, from: `read.${name}` })),
})

await t.test('outputs of a step for each item have a dimension of items', async (t) => {
  t.same(outputs({ forEach: ITEMS }), ['text TYPE_STRING -1,1'])
  t.same(outputs({ forEach: ITEMS }, given('next', 'score')), [
    'next TYPE_FP32 -1,4',
    'score TYPE_FP32 -1',
  ])
  const concat = { ...ITEMS, gather: 'Concat' }
  t.same(outputs({ forEach: concat }, given('next', 'lengths')), [
    'next TYPE_FP32 -1',
    'lengths TYPE_INT64 -1',
  ])
  const tolerant = { ...ITEMS, onItemError: { default: { text: TEXT } } }
  t.same(outputs({ forEach: tolerant }, given('text', 'failed')), [
    'text TYPE_STRING -1,1',
    'failed TYPE_BOOL -1',
  ])
  const bias = { constants: { bias: { datatype: 'FP32', value: [1] } } }
  t.same(outputs({ ...bias, forEach: { ...ITEMS, count: 'det.count' } }), ['text TYPE_STRING -1,1'])
  const chain = { modelRef: undefined, ensembleRef: { name: 'nested' }, forEach: ITEMS }
  t.same(outputs(chain), ['text TYPE_FP32 -1,1'])
})

await t.test('the graph says how often a step runs', async (t) => {
  const until = 'tensors["read.score"][0] < 0.5 || tensors["det.count"][0] > 3'
  const looped = check({ inputMap: { box: 'image' }, loop: { ...LOOP, until } }, { inputs: [BOX] })
  t.match(looped, {
    accepted: true,
    graph: {
      steps: [
        {},
        {
          controls: [{ name: 'det.count', from: { kind: 'made', step: 0, output: 'count' } }],
          loop: {
            carry: [{ input: 'box', output: 'next' }],
            until,
            reads: [{ name: 'read.score', output: 'score' }],
            maxIterations: 5,
          },
          outputs: [{ name: 'text' }],
        },
      ],
    },
  })
  const onItemError = { default: { text: TEXT } }
  t.match(check({ forEach: { ...ITEMS, count: 'det.count', onItemError } }), {
    accepted: true,
    graph: {
      steps: [
        {},
        {
          controls: [{ name: 'det.count' }],
          forEach: {
            items: ['box'],
            count: 'det.count',
            maxItems: 64,
            maxParallel: 16,
            gather: 'Stack',
            itemDefault: { text: { datatype: 'BYTES', shape: [1], value: ['?'] } },
          },
        },
      ],
    },
  })
})

await t.test('what cannot run for each item is refused, with its place', async (t) => {
  const each = 'steps[1](read).forEach'
  const cases: readonly (readonly [Fields, Fields, ...string[]])[] = [
    [
      { forEach: ITEMS },
      { maxBatchSize: 4 },
      `RepeatInvalid ${each}: got it in an Ensemble with batches of up to 4, want maxBatchSize 0: the rows of a batch may differ in it`,
    ],
    [
      { forEach: ITEMS, modelRef: { name: 'decoupled' } },
      {},
      `RepeatInvalid ${each}: got it for 'decoupled', which is decoupled, want a model of one response for each request`,
    ],
    [
      { forEach: ITEMS, modelRef: { name: 'sequential' } },
      {},
      `RepeatInvalid ${each}: got it for 'sequential', whose requests are sequences, want a model without sequence_batching: its requests have no sequence of their own`,
    ],
    [
      { forEach: ITEMS, loop: LOOP },
      {},
      'RepeatInvalid steps[1](read).loop: got it beside forEach, want one of them, and the other one on a step of an Ensemble that it runs',
    ],
    [
      { forEach: { ...ITEMS, items: { box: 'det.scores' } } },
      {},
      `ShapeMismatch ${each}.items[box]: 'reader' takes FP32[-1,4], outputs[1](scores) is FP32[-1]`,
    ],
    [
      { forEach: { ...ITEMS, items: { box: 'det.boxs' } } },
      {},
      `UnknownTensor ${each}.items[box]: 'detector' has no output 'boxs'; did you mean 'boxes'?`,
    ],
    [
      { forEach: { ...ITEMS, items: { bax: 'det.boxes' } } },
      {},
      `UnknownTensor ${each}.items[bax]: 'reader' has no input 'bax'; did you mean 'box'?`,
    ],
    [
      { inputMap: { box: 'det.boxes' }, forEach: ITEMS },
      {},
      `MultipleProducers ${each}.items[box]: the input 'box' is fed by steps[1](read).inputMap[box] already`,
    ],
    [
      { inputMap: { bias: 'det.boxes' }, forEach: ITEMS },
      {},
      "ShapeMismatch steps[1](read).inputMap[bias]: 'reader' takes FP32[1], outputs[0](boxes) is FP32[-1,4]",
    ],
    [
      { forEach: { ...ITEMS, count: 'det.scores' } },
      {},
      `RepeatInvalid ${each}.count: got 'det.scores' of FP32[-1], want one integer`,
    ],
    [
      { forEach: { ...ITEMS, count: 'dat.count' } },
      {},
      `UnknownStep ${each}.count: 'dat.count': no ensemble tensor of that name and no step 'dat'; did you mean 'det'?`,
    ],
    [
      { forEach: { ...ITEMS, gather: 'Concat' } },
      given('score'),
      `RepeatInvalid ${each}.gather: got Concat of 'score', which has no axis, want Stack`,
    ],
    [
      { forEach: ITEMS },
      given('lengths'),
      "UnknownTensor outputs[4].from: 'reader' has no output 'lengths'; there are 'text', 'next', 'score'",
    ],
    [
      { modelRef: { name: 'failing' }, forEach: { ...ITEMS, onItemError: { default: {} } } },
      given('failed'),
      `RepeatInvalid ${each}.onItemError: got the output 'failed' of 'failing', which this makes too, want an Ensemble that renames it`,
    ],
    [
      { modelRef: { name: 'failing' }, forEach: { ...ITEMS, gather: 'Concat' } },
      given('failed'),
      `RepeatInvalid ${each}.gather: got the output 'lengths' of 'failing', which this makes too, want an Ensemble that renames it`,
    ],
    [
      { forEach: { ...ITEMS, onItemError: { default: {} } } },
      {},
      `RepeatInvalid ${each}.onItemError.default: got none for 'text', which is read, want a value for an item that failed`,
    ],
    [
      { forEach: { ...ITEMS, onItemError: { default: { text: TEXT, txt: TEXT } } } },
      {},
      `UnknownTensor ${each}.onItemError.default[txt]: got 'txt', want an output of 'reader'; did you mean 'text'?`,
    ],
    [
      {
        forEach: {
          ...ITEMS,
          onItemError: { default: { text: { datatype: 'BYTES', value: ['a', 'b'] } } },
        },
      },
      {},
      `ShapeMismatch ${each}.onItemError.default[text]: got the shape [2], want [1], what 'reader' makes of an item`,
    ],
    [
      {
        forEach: {
          ...ITEMS,
          onItemError: { default: { text: { datatype: 'FP32', value: [1] } } },
        },
      },
      {},
      `DatatypeMismatch ${each}.onItemError.default[text]: got FP32, want BYTES, what 'reader' makes of an item`,
    ],
  ]
  for (const [read, spec, ...texts] of cases) t.same(faults(read, spec), texts)
})

await t.test('what cannot run in a loop is refused, with its place', async (t) => {
  const loop = 'steps[1](read).loop'
  const cases: readonly (readonly [Fields, Fields, ...string[]])[] = [
    [
      LOOP,
      { maxBatchSize: 4 },
      `RepeatInvalid ${loop}: got it in an Ensemble with batches of up to 4, want maxBatchSize 0: the rows of a batch may differ in it`,
    ],
    [
      { ...LOOP, carry: { box: 'det.boxes' } },
      {},
      `RepeatInvalid ${loop}.carry[box]: got 'det.boxes', want an output of the step itself`,
    ],
    [
      { ...LOOP, carry: { box: 'read.nxt' } },
      {},
      `UnknownTensor ${loop}.carry[box]: got 'nxt', want an output of 'reader'; did you mean 'next'?`,
    ],
    [
      { ...LOOP, carry: { bax: 'read.next' } },
      {},
      `UnknownTensor ${loop}.carry[bax]: got 'bax', want an input of 'reader'; did you mean 'box'?`,
    ],
    [
      { ...LOOP, carry: { bias: 'read.next' } },
      {},
      `ShapeMismatch ${loop}.carry[bias]: got 'next' of FP32[4], want FP32[1], which 'bias' takes`,
    ],
    [
      { ...LOOP, carry: { box: 'read.text' } },
      {},
      `DatatypeMismatch ${loop}.carry[box]: got 'text' of BYTES[1], want FP32[4], which 'box' takes`,
    ],
    [
      { ...LOOP, until: 'tensors["read.score"][0] + 1' },
      {},
      `ConditionInvalid ${loop}.until: got 'tensors["read.score"][0] + 1': no such overload: double + int, want a condition in CEL`,
    ],
    [
      { ...LOOP, until: 'tensors["read.scor"][0] > 1.0' },
      {},
      `UnknownTensor ${loop}.until: got 'scor', want an output of 'reader'; did you mean 'score'?`,
    ],
    [
      { ...LOOP, until: 'tensors["det.wide"][0] > 1.0' },
      {},
      `ConditionInvalid ${loop}.until: got tensors["det.wide"] of the shape [65], want at most 64 elements`,
    ],
  ]
  for (const [fields, spec, ...texts] of cases) {
    const read = { inputMap: { box: 'image' }, loop: fields }
    t.same(faults(read, { inputs: [BOX], ...spec }), texts)
  }
})

await t.test('a fallback runs for each item, or in a loop, as its step does', async (t) => {
  const onError = { fallback: { modelRef: { name: 'small' } } }
  const [text, next, score] = reader.output
  if (text === undefined || next === undefined || score === undefined) throw new Error('all three')
  const fallingBack = (small: Partial<ModelConfig>, read: Fields, spec: Fields = {}) =>
    faults({ onError, ...read }, spec, { ...reader, name: 'small', ...small })
  const at = 'steps[1](read).onError.fallback'
  const concat = { ...ITEMS, gather: 'Concat' }
  const tolerant = { ...ITEMS, onItemError: { default: { text: TEXT } } }
  const made = (name: string): ModelConfig['output'] => [...reader.output, { ...next, name }]
  const maps: readonly (readonly [Partial<ModelConfig>, Fields, ...string[]])[] = [
    [{}, { forEach: tolerant }],
    // Each call is cut for the model that it goes to.
    [{ max_batch_size: 0 }, { forEach: tolerant }],
    [{ output: [text] }, { forEach: tolerant }],
    [
      { output: [{ ...text, dims: [] }] },
      { forEach: concat },
      `RepeatInvalid ${at}: got Concat of 'text', which has no axis (forEach.gather), want Stack`,
    ],
    [
      { output: made('failed') },
      { forEach: tolerant },
      `RepeatInvalid ${at}: got the output 'failed' of 'small', which this makes too (forEach.onItemError), want an Ensemble that renames it`,
    ],
    [
      { output: [{ ...text, dims: [-1] }] },
      { forEach: { ...ITEMS, onItemError: { default: {} } } },
      `RepeatInvalid steps[1](read).forEach.onItemError.default: got none for 'text', which is read, want a value for an item that failed`,
    ],
    [
      { output: [text, { ...next, dims: [3] }] },
      { forEach: { ...ITEMS, onItemError: { default: { text: TEXT, next: NEXT } } } },
      `ShapeMismatch ${at}: got the shape [4] (forEach.onItemError.default[next]), want [3], what 'small' makes of an item`,
    ],
  ]
  for (const [small, read, ...texts] of maps) t.same(fallingBack(small, read), texts)

  const until = 'tensors["read.score"][0] < 0.5'
  const loop = { inputMap: { box: 'image' }, loop: { ...LOOP, until } }
  const loops: readonly (readonly [Partial<ModelConfig>, ...string[]])[] = [
    [{}],
    [
      { output: [text, score, { ...next, dims: [3] }] },
      `ShapeMismatch ${at}: got 'next' of FP32[3] (loop.carry[box]), want FP32[4], which 'box' takes`,
    ],
    [
      { output: [text, next] },
      `UnknownTensor ${at}: got 'score' (loop.until), want an output of 'small'; there are 'text', 'next'`,
    ],
    [
      { output: [text, next, { ...score, data_type: 'TYPE_UINT8' }] },
      `DatatypeMismatch ${at}: got 'score' of UINT8[] (loop.until), want FP32[] as of 'reader'`,
    ],
  ]
  for (const [small, ...texts] of loops) t.same(fallingBack(small, loop, { inputs: [BOX] }), texts)
})

await t.test('a plan refuses what a new configuration of the model forbids', async (t) => {
  const found = check({ forEach: ITEMS })
  if (!found.accepted) throw new Error(found.message)
  const plan = (now: ModelConfig) => {
    const { config, graph } = found
    const lookup = (name: string) => ({
      config: name === 'reader' ? now : detector,
      readyVersions: [1],
    })
    return planEnsemble({ config, graph, lookup })
  }
  t.match(plan(reader).steps[1], { isBatched: false, forEach: { maxItems: 64 } })
  t.throws(() => plan({ ...decoupled, name: 'reader' }), {
    reason: 'ENSEMBLE_INVALID',
    message:
      "in ensemble e, step 'read', forEach: got it for 'reader', which is decoupled, want a model of one response for each request",
  })
})
