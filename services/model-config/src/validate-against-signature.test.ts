import t from 'tap'
import { emptyModelConfig, parseModelConfig } from './parse-model-config.ts'
import type { ModelSignature, TensorSpec } from './signature.ts'
import { validateAgainstSignature } from './validate-against-signature.ts'

type Spec = Pick<TensorSpec, 'dims' | 'name'> & Partial<TensorSpec>

const spec = (given: Spec): TensorSpec => ({ datatype: 'FP32', optional: false, ...given })

const X = { name: 'x', dims: [-1, 3] }
const Y = { name: 'y', dims: [-1, 4] }

function check(text: string, inputs: readonly Spec[] = [X], outputs: readonly Spec[] = [Y]): void {
  const signature: ModelSignature = { inputs: inputs.map(spec), outputs: outputs.map(spec) }
  const parsed = parseModelConfig(`name: "m" ${text}`, 'config.pbtxt')
  validateAgainstSignature({ ...emptyModelConfig('m'), ...parsed }, signature)
}

const input = (dims: string, more = '') =>
  `input { name: "x" data_type: TYPE_FP32 dims: [${dims}] ${more} } `
const output = (dims: string, more = '') =>
  `output { name: "y" data_type: TYPE_FP32 dims: [${dims}] ${more} } `
const BATCHING = 'max_batch_size: 8 '

await t.test('a configuration that fits the model passes', async (t) => {
  const cases: [string, () => void][] = [
    ['batching', () => check(BATCHING + input('3') + output('4'))],
    ['not batching', () => check(input('-1, 3') + output('-1, 4'))],
    ['a fixed extent for a free input', () => check(input('7, 3') + output('-1, 4'))],
    ['only some outputs', () => check(input('-1, 3'), [X], [Y, { name: 'z', dims: [1] }])],
    [
      'a reshape',
      () =>
        check(
          BATCHING + input('3, 1', 'reshape { shape: 3 }') + output('2, 2', 'reshape { shape: 4 }'),
        ),
    ],
    [
      'a scalar',
      () => check(input('1') + output('1'), [{ name: 'x', dims: [] }], [{ name: 'y', dims: [] }]),
    ],
    [
      'an optional initialiser',
      () =>
        check(`${input('-1, 3')} input { name: "w" data_type: TYPE_FP32 dims: 2 optional: true }`, [
          X,
          { name: 'w', dims: [2], optional: true },
        ]),
    ],
    [
      'a ragged input',
      () => check(BATCHING + input('-1', 'allow_ragged_batch: true'), [{ name: 'x', dims: [-1] }]),
    ],
    [
      'a scattered output',
      () =>
        check(
          `${BATCHING}${input('3')}${output('9')} batch_output { target_name: "y" source_input: "x" }`,
        ),
    ],
    [
      'controls and states of sequences',
      () =>
        check(
          `${BATCHING}${input('3')} sequence_batching {
            control_input { name: "start" control { int32_false_true: [0, 1] } }
            state { input_name: "in" output_name: "out" } }`,
          [X, { name: 'start', dims: [-1, 1] }, { name: 'in', dims: [-1, 1] }],
        ),
    ],
  ]
  for (const [what, run] of cases) t.doesNotThrow(run, what)
})

const REFUSED: readonly (readonly [string, () => void])[] = [
  [
    "unable to load model 'm', configuration expects 2 inputs, model provides 1",
    () => check(`${input('-1, 3')} input { name: "w" data_type: TYPE_FP32 dims: 1 }`),
  ],
  [
    "unable to load model 'm', configuration expects 1 inputs, model provides 2",
    () => check(input('-1, 3'), [X, { name: 'w', dims: [1] }]),
  ],
  [
    "unexpected inference input 'x', allowed inputs are: a",
    () => check(input('-1, 3'), [{ name: 'a', dims: [1] }]),
  ],
  [
    "unexpected inference output 'y', allowed outputs are: a, b",
    () =>
      check(
        input('-1, 3') + output('1'),
        [X],
        [
          { name: 'b', dims: [] },
          { name: 'a', dims: [] },
        ],
      ),
  ],
  [
    "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'x', model provides TYPE_INT64",
    () => check(input('-1, 3'), [{ ...X, datatype: 'INT64' }]),
  ],
  [
    "unable to load model 'm', configuration expects datatype TYPE_FP32 for output 'y', model provides TYPE_STRING",
    () => check(input('-1, 3') + output('-1, 4'), [X], [{ ...Y, datatype: 'BYTES' }]),
  ],
  [
    "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape [-1,3,1])",
    () => check(BATCHING + input('3, 1')),
  ],
  [
    "model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,3]) but the model configuration specifies 2 dimensions (shape [-1,-1])",
    () => check(input('-1, -1')),
  ],
  [
    "model 'm', tensor 'y': the model expects 2 dimensions (shape [-1,4]) but the model configuration specifies 2 dimensions (shape [2,4])",
    () => check(input('-1, 3') + output('2, 4')),
  ],
  [
    "model 'm', tensor 'x': for the model to support batching the shape should have at least 1 dimension and the first dimension must be -1; but shape expected by the model is [1,3]",
    () => check(BATCHING + input('3'), [{ name: 'x', dims: [1, 3] }]),
  ],
  [
    "unable to load model 'm', scalar tensor 'x', should only provide 1 in the model configuration when the model doesn't support batching. Model configuration provided: [2].",
    () => check(input('2'), [{ name: 'x', dims: [] }]),
  ],
  [
    "'optional' is set to true for input 'x' while the backend model doesn't support optional input",
    () =>
      check(`${input('-1, 3', 'optional: true')} input { name: "w" data_type: TYPE_FP32 dims: 1 }`),
  ],
  [
    "unable to load model 'm', optional input 'x' is not supported for models that support batching",
    () => check(BATCHING + input('3', 'optional: true'), []),
  ],
  [
    "unable to load model 'm', configuration expects model provides input with shape [-1]  for ragged input 'x', model provides [-1,3]",
    () => check(BATCHING + input('-1', 'allow_ragged_batch: true')),
  ],
  [
    "unable to load model 'm', configuration expects model provides input with shape [-1] for ragged input 'x', which is not supported for optional input",
    () => check(input('-1', 'allow_ragged_batch: true optional: true'), [{ ...X, optional: true }]),
  ],
]

await t.test("what does not fit is CONFIG_INVALID with Triton's text", async (t) => {
  for (const [message, run] of REFUSED) {
    t.throws(run, { reason: 'CONFIG_INVALID', message }, message)
  }
})
