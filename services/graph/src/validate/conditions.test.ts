import { modelConfig } from '@tutti/model-config/testing'
import t from 'tap'
import { checkOver, type Spec } from '../testing/detector-world.ts'
import type { KnownModel } from './find-models.ts'

const MODELS: Readonly<Record<string, KnownModel>> = {
  one: {
    config: modelConfig({
      name: 'one',
      input: [
        { name: 'x', dims: [4] },
        { name: 'z', dims: [1], optional: true },
      ],
      output: [
        { name: 'y', dims: [4] },
        { name: 'big', dims: [-1, 100] },
        { name: 'text', data_type: 'TYPE_STRING', dims: [1] },
      ],
    }),
  },
  batched: {
    config: modelConfig({
      name: 'batched',
      max_batch_size: 8,
      input: [
        { name: 'x', dims: [4] },
        { name: 'z', dims: [1] },
      ],
      output: [{ name: 'y', dims: [4] }],
    }),
  },
}

const X = { name: 'x', datatype: 'FP32', shape: [4] }
const small = { name: 'small', modelRef: { name: 'one' }, inputMap: { x: 'x' } }
const large = { ...small, name: 'large', when: 'tensors["small.y"][0] < 0.8' }
const BASE: Spec = {
  inputs: [X],
  outputs: [{ name: 'label', firstOf: ['large.y', 'small.y'] }],
  steps: [small, large],
}

function problemsOf(spec: Spec): readonly string[] {
  const check = checkOver({ ...BASE, ...spec }, { lookup: (name) => MODELS[name] ?? 'unknown' })
  if (check.accepted) return []
  return [check, ...(check.others ?? [])].map(({ reason, message }) => `${message} (${reason})`)
}

await t.test('graphs that choose, merge and have constants are accepted', (t) => {
  const constant = { datatype: 'FP32', value: [0.4] }
  const table: readonly Spec[] = [
    {},
    { outputs: [{ name: 'label', from: 'large.y', optional: true }], steps: [small, large] },
    // An output that may be absent has the name of an input, which is always there.
    {
      outputs: [
        { name: 'x', from: 'large.y', optional: true },
        { name: 'label', from: 'small.text' },
      ],
    },
    { steps: [small, { ...large, constants: { z: constant } }] },
    {
      inputs: [
        X,
        { ...X, name: 'w', optional: true, default: { ...constant, value: [1, 2, 3, 4] } },
      ],
      steps: [small, { ...large, inputMap: { x: 'w' } }],
    },
    { steps: [small, { ...large, when: '"tier" in parameters && parameters["tier"] == "gold"' }] },
    {
      steps: [
        small,
        { ...large, when: 'tensors["x"][0] > 0.0 || tensors["small.text"][0] == "cat"' },
      ],
    },
    {
      outputs: [{ name: 'label', from: 'b.y' }],
      steps: [
        {
          name: 'b',
          modelRef: { name: 'batched' },
          inputMap: { x: 'x' },
          constants: { z: constant },
        },
      ],
    },
    {
      outputs: [{ name: 'label', from: 'last.y' }],
      steps: [
        small,
        large,
        { name: 'last', modelRef: { name: 'one' }, firstOf: { x: ['large.y', 'small.y'] } },
      ],
    },
  ]
  for (const spec of table) t.same(problemsOf(spec), [], JSON.stringify(spec))
  t.end()
})

await t.test('what is wrong with them is said at its field', (t) => {
  const withWhen = (when: string): Spec => ({ steps: [small, { ...large, when }] })
  const withConstant = (value: object): Spec => ({
    steps: [small, { ...large, constants: { z: value } }],
  })
  const table: readonly (readonly [Spec, RegExp])[] = [
    [
      withWhen('tensors["small.y"][0] < "a"'),
      /^steps\[1\]\(large\)\.when: got '.*': no such overload: double < string, want a condition in CEL \(ConditionInvalid\)$/,
    ],
    [
      { steps: [small, { ...large, parameters: { priority: 1 } }] },
      /^steps\[1\]\(large\)\.parameters\[priority\]: got a parameter that only a request can have, want another name \(InvalidSpec\)$/,
    ],
    [withWhen('tensors["small.y"][0]'), /its value is of the type double, want bool/],
    [
      withWhen('tensors["smal.y"][0] < 1.0'),
      /^steps\[1\]\(large\)\.when: 'smal\.y': no ensemble tensor of that name and no step 'smal'; did you mean 'small'\? \(UnknownStep\)$/,
    ],
    [
      withWhen('tensors["small.z"][0] < 1.0'),
      /^steps\[1\]\(large\)\.when: 'one' has no output 'z'/,
    ],
    [withWhen('score < 1.0'), /Unknown variable: score/],
    [withWhen('tensors["small.text"][0].matches("a")'), /'matches' is not offered/],
    [
      withWhen('tensors["small.big"][0] < 1.0'),
      /^steps\[1\]\(large\)\.when: got tensors\["small\.big"\] of the shape \[-1,100\], want at most 64 elements/,
    ],
    [
      withWhen('tensors["large.y"][0] < 1.0'),
      /^steps\[1\]\(large\): steps wait for one another: large -> large \(CycleDetected\)$/,
    ],
    [
      { outputs: [{ name: 'label', from: 'large.y' }] },
      /^outputs\[0\]\(label\)\.from: got 'label', which a step that may be skipped makes, want optional: true, or firstOf with another tensor \(OutputInvalid\)$/,
    ],
    [
      { outputs: [{ name: 'label', firstOf: ['small.y', 'large.y'] }] },
      /^outputs\[0\]\(label\)\.firstOf: got 'large\.y' behind a tensor that is always there/,
    ],
    [
      { outputs: [{ name: 'label', firstOf: ['large.text', 'small.y'] }] },
      /^outputs\[0\]\(label\)\.firstOf: got 'small\.y' of FP32\[4\], want BYTES\[1\] \(DatatypeMismatch\)$/,
    ],
    [
      { outputs: [{ name: 'label', firstOf: ['large.big', 'small.y'] }] },
      /firstOf: got 'small\.y' of FP32\[4\], want FP32\[-1,100\] \(ShapeMismatch\)$/,
    ],
    [
      {
        steps: [
          small,
          large,
          { name: 'last', modelRef: { name: 'one' }, firstOf: { x: ['large.text', 'small.y'] } },
        ],
      },
      /^steps\[2\]\(last\)\.firstOf\[x\]: 'one' takes FP32\[4\], large\.text is BYTES\[1\] \(DatatypeMismatch\)$/,
    ],
    [
      withConstant({ datatype: 'INT32', value: [1] }),
      /^steps\[1\]\(large\)\.constants\[z\]: got INT32, want FP32, what 'one' takes \(DatatypeMismatch\)$/,
    ],
    [
      withConstant({ datatype: 'FP32', value: [1, 2] }),
      /^steps\[1\]\(large\)\.constants\[z\]: got the shape \[2\], want \[1\], what 'one' takes \(ShapeMismatch\)$/,
    ],
    [
      { steps: [small, { ...large, constants: { q: { datatype: 'FP32', value: [1] } } }] },
      /^steps\[1\]\(large\)\.constants\[q\]: 'one' has no input 'q'/,
    ],
    [
      { steps: [small, { ...large, constants: { x: { datatype: 'FP32', value: [1, 2, 3, 4] } } }] },
      /^steps\[1\]\(large\)\.constants\[x\]: the input 'x' is fed by steps\[1\]\(large\)\.inputMap\[x\] already \(MultipleProducers\)$/,
    ],
    [
      {
        maxBatchSize: 0,
        inputs: [{ ...X, optional: true, default: { datatype: 'FP32', value: [1] } }],
      },
      /^inputs\(x\)\.default: got the shape \[1\], want \[4\], its own \(ShapeMismatch\)$/,
    ],
  ]
  for (const [spec, problem] of table) {
    const problems = problemsOf(spec)
    t.ok(
      problems.some((one) => problem.test(one)),
      `${problem.source}: ${problems.join('; ') || 'accepted'}`,
    )
  }
  t.end()
})

await t.test('a condition in an Ensemble with batches is refused', (t) => {
  const batched = {
    ...small,
    modelRef: { name: 'batched' },
    constants: { z: { datatype: 'FP32', value: [1] } },
  }
  const spec = { maxBatchSize: 8, steps: [batched, { ...batched, name: 'large', when: 'true' }] }
  t.match(
    problemsOf(spec)[0],
    /^steps\[1\]\(large\)\.when: got a condition in an Ensemble with batches of up to 8, want maxBatchSize 0/,
  )
  t.end()
})
