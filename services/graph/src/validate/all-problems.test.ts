import t from 'tap'
import { checkOver, detect, image, type Spec } from '../testing/detector-world.ts'
import { summarizeProblems } from './check-manifest.ts'

/** `reason path` of each problem. */
function problemsOf(spec: Spec): readonly string[] {
  const result = checkOver(spec)
  if (result.accepted) return []
  return [result, ...(result.others ?? [])].map(
    ({ reason, message }) => `${reason} ${message.slice(0, message.indexOf(': '))}`,
  )
}

const step = (name: string, model: string, inputMap: Spec, more: Spec = {}) => ({
  name,
  modelRef: { name: model },
  inputMap,
  ...more,
})
const two = (from: string) => ({ name: 'crops', from })

await t.test('every problem is told at once, what is not known yet last', (t) => {
  const spec = {
    inputs: [image, { ...image, name: 'mask' }],
    outputs: [
      { name: 'boxes', from: 'det.boxes' },
      { name: 'again', from: 'det.boxes' },
      { name: 'text', from: 'ocr.text', datatype: 'INT8', shape: [-1, 1] },
      { name: 'lost', from: 'nowhere' },
      { name: 'late', from: 'wait.out' },
    ],
    steps: [
      step('det', 'detector', { image: 'image', size: 'image' }),
      step('ocr', 'reader', { image: 'det.crops' }, { hedge: { after: '1s' }, mayRunTwice: true }),
      step('wait', 'later', { i: 'image' }),
      step('gone', 'reeder', { image: 'image' }),
      step('old', 'detector', { image: 'image' }, { modelRef: { name: 'detector', version: 7 } }),
      step('left', 'detector', { image: 'right.boxes' }, { dependsOn: ['lefd'] }),
      step('right', 'detector', { image: 'left.boxes' }),
    ],
  }
  t.same(problemsOf(spec), [
    'UnknownTensor outputs[3].from',
    'UnknownStep steps[5](left).dependsOn[0]',
    'OutputInvalid outputs[1].from',
    'UnreachableStep steps[3](gone)',
    'UnreachableStep steps[4](old)',
    'UnusedInput inputs[1](mask)',
    'CycleDetected steps[5](left)',
    'UnknownModel steps[3](gone).modelRef.name',
    'UnknownModel steps[4](old).modelRef.version',
    'UnknownTensor steps[0](det).inputMap[size]',
    'DatatypeMismatch steps[1](ocr).inputMap[image]',
    'DatatypeMismatch outputs[2].from',
    'DatatypeMismatch steps[6](right).inputMap[image]',
    'DatatypeMismatch steps[5](left).inputMap[image]',
    'SchemaPending steps[2](wait).modelRef',
  ])
  t.end()
})

await t.test('what follows from a problem is not told beside it', (t) => {
  const more = { name: 'more', modelRef: { name: 'detector' } }
  const cases: [Spec, readonly string[]][] = [
    // The input is read, but for a letter; so is the step.
    [
      { steps: [{ ...detect, inputMap: { image: 'imag' } }] },
      ['UnknownTensor steps[0](det).inputMap[image]'],
    ],
    [{ outputs: [two('dot.crops')] }, ['UnknownStep outputs[0].from']],
    [{ outputs: [two('det')] }, ['UnknownTensor outputs[0].from']],
    [
      { steps: [{ ...detect, inputMap: { image: 'x' }, outputMap: { boxes: 'b', crops: 'b' } }] },
      [
        'MultipleProducers steps[0](det).outputMap[crops]',
        'UnknownTensor steps[0](det).inputMap[image]',
      ],
    ],
    [
      { steps: [detect, { ...more, inputs: ['later'] }], outputs: [two('more.crops')] },
      ['UnknownStep steps[1](more).inputs[0]', 'UnreachableStep steps[0](det)'],
    ],
    [
      { steps: [detect, { ...more, inputs: ['image'] }], outputs: [two('det.crops')] },
      ['UnknownStep steps[1](more).inputs[0]', 'UnreachableStep steps[1](more)'],
    ],
    // A shorthand cannot be read while its model is not known.
    [
      {
        steps: [
          { ...detect, modelRef: { name: 'later' } },
          { ...more, inputs: ['det'] },
        ],
        outputs: [two('more.crops')],
      },
      ['SchemaPending steps[0](det).modelRef'],
    ],
  ]
  for (const [spec, problems] of cases) t.same(problemsOf(spec), problems, JSON.stringify(spec))
  t.end()
})

await t.test('a problem is told where its author can see it', (t) => {
  const cases: [Spec, string][] = [
    // The model has the input, so that the map is not turned round.
    [
      { steps: [{ ...detect, inputMap: { image: 'imag' } }] },
      "steps[0](det).inputMap[image]: no ensemble tensor 'imag'; did you mean 'image'?",
    ],
    // A tensor that a step reads too is declared where it is given out.
    [
      {
        outputs: [
          { ...two('det.crops'), datatype: 'INT8', shape: [-1, -1, 3] },
          { name: 'boxes', from: 'more.boxes' },
        ],
        steps: [detect, step('more', 'detector', { image: 'det.crops' })],
      },
      "outputs[0].from: 'detector' makes UINT8[-1,-1,3], outputs[0](crops) is INT8[-1,-1,3]",
    ],
    // To clients an output with the name of an input has the type of both.
    [
      { outputs: [{ name: 'image', from: 'det.crops', datatype: 'INT8', shape: [-1, -1, 3] }] },
      'outputs[0](image).from: got INT8[-1,-1,3], want UINT8[-1,-1,3], which the input of that name is',
    ],
    [
      { outputs: [{ name: 'image', from: 'det.crops', datatype: 'UINT8', shape: [3] }] },
      'outputs[0](image).from: got UINT8[3], want UINT8[-1,-1,3], which the input of that name is',
    ],
  ]
  for (const [spec, message] of cases) {
    const result = checkOver(spec)
    const found = result.accepted ? [] : [result, ...(result.others ?? [])]
    t.ok(
      found.some((one) => one.message === message),
      `${message}: ${found.map((one) => one.message).join('; ')}`,
    )
  }
  t.end()
})

const some = (count: number) => Array.from({ length: count }, (_, i) => ({ message: `p${i}` }))

await t.test('a summary has the first problems, and how many there are besides', (t) => {
  t.equal(summarizeProblems(some(1)), 'p0')
  t.equal(summarizeProblems(some(4)), 'p0; also p1; also p2; also p3')
  t.equal(
    summarizeProblems(some(9)),
    'p0; also p1; also p2; also p3; and 5 more, which tutti validate lists',
  )
  t.end()
})
