import t from 'tap'
import { normaliseModelConfig } from '../complete/normalise-model-config.ts'
import { sequenceControls, withSequenceTensors } from '../complete/sequence-tensors.ts'
import { parseModelConfig } from '../text/parse-model-config.ts'
import { validateWhenRead } from './validate-model-config.ts'

function read(sequence: string) {
  const text = `name: "m" backend: "python" max_batch_size: 4
    input { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } output { name: "y" data_type: TYPE_FP32 dims: [ 2 ] }
    sequence_batching { ${sequence} }`
  return normaliseModelConfig(parseModelConfig(text, 'config.pbtxt'))
}

const START = 'CONTROL_SEQUENCE_START'
const CORRID = 'CONTROL_SEQUENCE_CORRID'

/** A control input; `values` are the fields of its control. */
function control(name: string, kind: string, values: string): string {
  return `control_input { name: "${name}" control { kind: ${kind} ${values} } }`
}

const REFUSED: readonly (readonly [string, string])[] = [
  [
    control('', START, 'int32_false_true: [0, 1]'),
    'sequence batching control tensor must have a name for m',
  ],
  [
    control('A', START, 'int32_false_true: [0, 1]') + control('A', 'CONTROL_SEQUENCE_END', ''),
    "sequence batching control tensor 'A' is specified for multiple control kinds for m",
  ],
  [
    `control_input { name: "A" control [ { int32_false_true: [0, 1] }, { kind: CONTROL_SEQUENCE_END } ] }`,
    "sequence batching control tensor 'A' is specified for multiple control kinds for m",
  ],
  [
    'control_input { name: "A" }',
    "sequence batching control tensor 'A' must specify a control for m",
  ],
  [
    control('A', START, 'int32_false_true: [0, 1]') +
      control('B', START, 'int32_false_true: [0, 1]'),
    `sequence batching specifies multiple ${START} tensors for m`,
  ],
  [
    control('A', START, ''),
    `sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ${START} for m`,
  ],
  [
    control('A', START, 'int32_false_true: [0, 1] bool_false_true: [false, true]'),
    `sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true' for ${START} for m`,
  ],
  ...['int32_false_true: 1', 'fp32_false_true: [0, 1, 2]', 'bool_false_true: true'].map(
    (values): [string, string] => [
      control('A', START, values),
      `sequence batching control '${values.split(':')[0]}' must have exactly 2 entries for ${START} for m`,
    ],
  ),
  [
    control('A', CORRID, 'data_type: TYPE_UINT64 int32_false_true: [0, 1]'),
    `sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ${CORRID} for m`,
  ],
  ...['data_type: TYPE_FP32', ''].map((values): [string, string] => [
    control('A', CORRID, values),
    `unexpected data type for control ${CORRID} for m. Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING`,
  ]),
  [
    'oldest { preferred_batch_size: 0 }',
    'sequence batching preferred batch size must be positive for m',
  ],
  [
    'oldest { preferred_batch_size: [4, 5] }',
    'sequence batching preferred batch size must be <= max batch size for m',
  ],
  [
    'oldest { max_candidate_sequences: -1 }',
    'sequence batching max_candidate_sequences must be non-negative, got -1, for m',
  ],
  ...['-0.5', '1.5'].map((value): [string, string] => [
    `direct { minimum_slot_utilization: ${value} }`,
    'sequence batching minimum slot utilization must be in range (0.0, 1.0] for m',
  ]),
  [
    'state { input_name: "a" data_type: TYPE_FP32 dims: 1 }',
    "sequence batching state must specify 'input_name' and 'output_name' for m",
  ],
  [
    'state { input_name: "a" output_name: "b" dims: 1 }',
    "sequence batching state 'a' must specify 'data_type' for m",
  ],
  [
    'state { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: 0 }',
    "sequence batching state 'a' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
  ],
  [
    'state { input_name: "x" output_name: "b" data_type: TYPE_FP32 dims: 1 }',
    "sequence batching input 'x' is specified more than once for m",
  ],
  [
    control('x', START, 'int32_false_true: [0, 1]'),
    "sequence batching input 'x' is specified more than once for m",
  ],
  [
    ['a', 'c']
      .map((n) => `state { input_name: "${n}" output_name: "b" data_type: TYPE_FP32 dims: 1 }`)
      .join(' '),
    "State output name 'b' specified more than once for m",
  ],
]

await t.test('what breaks a rule of sequences is refused with the text of Triton', async (t) => {
  for (const [text, message] of REFUSED) {
    const error = t.throws(() => validateWhenRead(read(text), 'm'), text)
    t.match(error, { reason: 'CONFIG_INVALID', message })
  }
})

await t.test('every form of a control is read, and a model has them as inputs', async (t) => {
  const config = read(`
    ${control('S', START, 'int32_false_true: [2, 3]')}
    ${control('E', 'CONTROL_SEQUENCE_END', 'fp32_false_true: [0.5, 1.5]')}
    ${control('R', 'CONTROL_SEQUENCE_READY', 'bool_false_true: [true, false]')}
    ${control('C', CORRID, 'data_type: TYPE_STRING')}
    state { input_name: "a" output_name: "b" data_type: TYPE_INT64 dims: [ -1, 2 ] }
    state { input_name: "c" output_name: "y" data_type: TYPE_FP32 dims: [ 2 ] }`)
  t.doesNotThrow(() => validateWhenRead(config, 'm'))
  t.same(
    sequenceControls(config).map((c) => [c.name, c.dataType, ...c.falseTrue]),
    [
      ['S', 'TYPE_INT32', 2, 3],
      ['E', 'TYPE_FP32', 0.5, 1.5],
      ['R', 'TYPE_BOOL', true, false],
      ['C', 'TYPE_STRING'],
    ],
  )
  const { input, output } = withSequenceTensors(config)
  t.same(
    input.map(({ name, data_type, dims }) => [name, data_type, dims]),
    [
      ['x', 'TYPE_FP32', [2]],
      ['S', 'TYPE_INT32', [1]],
      ['E', 'TYPE_FP32', [1]],
      ['R', 'TYPE_BOOL', [1]],
      ['C', 'TYPE_STRING', [1]],
      ['a', 'TYPE_INT64', [-1, 2]],
      ['c', 'TYPE_FP32', [2]],
    ],
  )
  t.same(
    output.map(({ name }) => name),
    ['y', 'b'],
  )
})

await t.test('defaults are those of Triton', async (t) => {
  const none = read('').sequence_batching
  t.equal(none?.max_sequence_idle_microseconds, 1_000_000)
  t.equal(none?.oldest, undefined)
  const oldest = read('max_sequence_idle_microseconds: 5 oldest { }').sequence_batching
  t.equal(oldest?.max_sequence_idle_microseconds, 5)
  t.same(oldest?.oldest?.preferred_batch_size, [4])
})
