import { EXPOSED } from './expose-changes.ts'
import { change, changes, type FieldChange, type Reach } from './field-changes.ts'

/** The config.pbtxt texts of the models in the field walk, by name. `last` reads the output `boxes` of `first` and `second`. */
export const CONFIGS: Readonly<Record<string, string>> = {
  first: signature(['image', 'mask'], ['boxes', 'scores']),
  second: signature(['image', 'mask'], ['boxes', 'scores']),
  last: signature(['boxes'], ['text']),
}

/** All but the first input are optional. */
function signature(inputs: readonly string[], outputs: readonly string[]): string {
  return [
    'max_batch_size: 8',
    ...inputs.map((name, i) => `input { ${tensor(name)} ${i === 0 ? '' : 'optional: true'} }`),
    ...outputs.map((name) => `output { ${tensor(name)} }`),
  ].join('\n')
}

function tensor(name: string): string {
  return `name: "${name}" data_type: TYPE_FP32 dims: [ -1 ]`
}

const input = (name: string) => ({ name, datatype: 'FP32', shape: [-1] })
const step = (name: string, modelName: string) => ({
  name,
  modelRef: { name: modelName },
  inputMap: { image: 'image' },
})
const given = (names: readonly string[]) =>
  names.map((from) => ({ name: from.replace('.', '_'), from }))

/** The spec of the Ensembles in the field walk, over which each change puts its own fields. */
export const ENSEMBLE_SPEC = {
  maxBatchSize: 4,
  inputs: [input('image')],
  outputs: [{ name: 'boxes', from: 'detect.boxes' }],
  steps: [step('detect', 'first')],
}

/** Not accepted: the reason, and the field in the message. */
function unaccepted(reason: string, says: RegExp): Reach {
  return { at: 'operator', condition: `Accepted=False/${reason}`, says }
}

/** Three steps that do not depend on each other. */
const THREE = {
  outputs: given(['a.boxes', 'b.boxes', 'c.boxes']),
  steps: [step('a', 'first'), step('b', 'first'), step('c', 'second')],
}

/** A step that runs a built-in. */
const BUILT = {
  outputs: [{ name: 'boxes', from: 'detect.output' }],
  steps: [{ name: 'detect', builtin: { name: 'sigmoid' }, inputMap: { input: 'image' } }],
}

/** Two of which a third reads. */
const READ = {
  outputs: [...given(['read.text', 'detect.scores', 'again.scores'])],
  steps: [
    { name: 'read', modelRef: { name: 'last' } },
    step('detect', 'first'),
    step('again', 'second'),
  ],
}

const HEDGED = { hedge: { after: '50ms' }, mayRunTwice: true }
const FALLBACK = { onError: { fallback: { modelRef: { name: 'second' } } } }
const ONE = { datatype: 'FP32', value: [1], shape: [1] }

/** A value for the output of `detect` that is read. */
const ANSWERED = {
  steps: [{ ...step('detect', 'first'), onError: { default: { boxes: { ...ONE, value: [0] } } } }],
}
const RETRIED = { retry: { maxRetries: 2, retryOn: ['UNAVAILABLE'] } }
const WITH_DEFAULT = { inputs: [{ ...input('image'), optional: true, default: ONE }] }
const WITH_CONSTANT = { steps: [{ ...step('detect', 'first'), constants: { mask: ONE } }] }
const MAYBE = {
  maxBatchSize: 0,
  outputs: [{ name: 'boxes', from: 'detect.boxes', optional: true }],
}

/** Two steps that may be skipped, one that is not, and one that reads the first tensor of those that there are. */
const CHOICE = {
  maxBatchSize: 0,
  outputs: [
    { name: 'best', firstOf: ['detect.boxes', 'third.boxes'] },
    { name: 'text', from: 'read.text' },
    ...given(['detect.boxes', 'again.boxes']).map((output) => ({ ...output, optional: true })),
  ],
  steps: [
    {
      name: 'read',
      modelRef: { name: 'last' },
      firstOf: { boxes: ['detect.boxes', 'third.boxes'] },
    },
    { ...step('detect', 'first'), when: 'true' },
    { ...step('again', 'second'), when: 'true' },
    step('third', 'second'),
  ],
}

const CHOICES: readonly FieldChange[] = [
  ...changes(WITH_DEFAULT, [['inputs[].default.value[]', 1, 2]]),
  ...changes(
    { inputs: [{ ...input('image'), optional: true, default: { datatype: 'FP32', value: [1] } }] },
    [['inputs[].default.value', [1], []]],
  ),
  change(unaccepted('ShapeMismatch', /default/), ['inputs[].default.shape', [1], []], WITH_DEFAULT),
  change(
    unaccepted('InvalidSpec', /got 1 elements, want 2/),
    ['inputs[].default.shape[]', 1, 2],
    WITH_DEFAULT,
  ),
  change(
    unaccepted('DatatypeMismatch', /default/),
    ['inputs[].default.datatype', 'FP32', 'UINT8'],
    WITH_DEFAULT,
  ),
  ...changes(WITH_CONSTANT, [
    ['steps[].constants{mask}.value[]', 1, 2],
    ['steps[].constants', { mask: ONE }, {}],
  ]),
  ...changes(
    {
      steps: [
        { ...step('detect', 'first'), constants: { mask: { datatype: 'FP32', value: [1] } } },
      ],
    },
    [['steps[].constants{mask}.value', [1], []]],
  ),
  change(
    unaccepted('ShapeMismatch', /constants/),
    ['steps[].constants{mask}.shape', [1], []],
    WITH_CONSTANT,
  ),
  change(
    unaccepted('InvalidSpec', /got 1 elements, want 2/),
    ['steps[].constants{mask}.shape[]', 1, 2],
    WITH_CONSTANT,
  ),
  change(
    unaccepted('DatatypeMismatch', /constants/),
    ['steps[].constants{mask}.datatype', 'FP32', 'UINT8'],
    WITH_CONSTANT,
  ),
  ...changes(CHOICE, [
    ['outputs[].firstOf[]', 'detect.boxes', 'again.boxes'],
    ['steps[].firstOf{boxes}[]', 'detect.boxes', 'again.boxes'],
  ]),
  change(
    unaccepted('MissingInput', /got no inputs/),
    ['steps[].firstOf', { boxes: ['detect.boxes', 'third.boxes'] }, {}],
    CHOICE,
  ),
  ...changes({}, [
    ['outputs[].optional', undefined, true],
    ['steps[].parameters{tier}', 'gold', 'silver'],
    ['steps[].parameters', { tier: 'gold' }, {}],
  ]),
  ...changes(MAYBE, [['steps[].when', 'true', 'false']]),
]

/** A step for each item, beside one that reads the same inputs. */
function forEach(fields: object) {
  return {
    maxBatchSize: 0,
    inputs: [
      ...['image', 'other'].map((name) => ({ name, datatype: 'FP32', shape: [-1, -1] })),
      ...['n', 'm'].map((name) => ({ name, datatype: 'INT32', shape: [1] })),
    ],
    outputs: [
      { name: 'boxes', from: 'detect.boxes' },
      { name: 'rest', from: 'rest.boxes', optional: true },
    ],
    steps: [
      {
        name: 'detect',
        modelRef: { name: 'first' },
        forEach: { items: { image: 'image', mask: 'image' }, maxItems: 9, count: 'n', ...fields },
      },
      {
        name: 'rest',
        modelRef: { name: 'first' },
        inputMap: { image: 'image', mask: 'other' },
        when: 'tensors["n"][0] + tensors["m"][0] > 0',
      },
    ],
  }
}

/** A step that gets its own boxes again. */
function loop(fields: object) {
  const carry = { image: 'detect.boxes', mask: 'detect.boxes' }
  return {
    maxBatchSize: 0,
    steps: [{ ...step('detect', 'first'), loop: { carry, maxIterations: 9, ...fields } }],
  }
}

const REPEATED: readonly FieldChange[] = [
  ...changes(forEach({}), [
    ['steps[].forEach.items{mask}', 'image', 'other'],
    ['steps[].forEach.count', 'n', 'm'],
    ['steps[].forEach.maxItems', 9, 10],
    ['steps[].forEach.maxParallel', undefined, 3],
    ['steps[].forEach.gather', undefined, 'Concat'],
  ]),
  change(
    { at: 'server', says: /want an input to be cut/ },
    ['steps[].forEach.items', { image: 'image', mask: 'image' }, {}],
    forEach({}),
  ),
  ...changes(forEach({ onItemError: { default: { boxes: ONE } } }), [
    ['steps[].forEach.onItemError.default{boxes}.value[]', 1, 2],
  ]),
  ...changes(forEach({ onItemError: { default: { boxes: { datatype: 'FP32', value: [1] } } } }), [
    ['steps[].forEach.onItemError.default{boxes}.value', [1], []],
  ]),
  change(
    unaccepted('RepeatInvalid', /got none for 'boxes'/),
    ['steps[].forEach.onItemError.default', { boxes: ONE }, {}],
    forEach({ onItemError: { default: { boxes: ONE } } }),
  ),
  change(
    unaccepted('ShapeMismatch', /default\[boxes\]/),
    ['steps[].forEach.onItemError.default{boxes}.shape', [1], []],
    forEach({ onItemError: { default: { boxes: ONE } } }),
  ),
  change(
    unaccepted('InvalidSpec', /got 1 elements, want 2/),
    ['steps[].forEach.onItemError.default{boxes}.shape[]', 1, 2],
    forEach({ onItemError: { default: { boxes: ONE } } }),
  ),
  change(
    unaccepted('DatatypeMismatch', /default\[boxes\]/),
    ['steps[].forEach.onItemError.default{boxes}.datatype', 'FP32', 'UINT8'],
    forEach({ onItemError: { default: { boxes: ONE } } }),
  ),
  change(
    { at: 'server', says: /want an input that an iteration hands to the next/ },
    ['steps[].loop.carry', { image: 'detect.boxes', mask: 'detect.boxes' }, {}],
    loop({}),
  ),
  ...changes(loop({}), [
    ['steps[].loop.carry{mask}', 'detect.boxes', 'detect.scores'],
    ['steps[].loop.until', undefined, 'tensors["detect.scores"][0] > 0.5'],
    ['steps[].loop.maxIterations', 9, 10],
  ]),
]

const GRAPH: readonly FieldChange[] = [
  ...CHOICES,
  ...changes({}, [
    ['maxBatchSize', 4, 2],
    ['inputs[].shape[]', -1, 16],
    ['inputs[].optional', undefined, true],
    ['outputs[].name', 'boxes', 'found'],
    ['outputs[].from', 'detect.boxes', 'detect.scores'],
    ['steps[].modelRef.name', 'first', 'second'],
    ['steps[].modelRef.version', undefined, 1],
    ['steps[].modelRef.version', 1, 2],
    ['timeout', undefined, '5s'],
    ['timeout', '5s', '6s'],
    ['maxInFlightRequests', undefined, 8],
    ['steps[].timeout', undefined, '300ms'],
  ]),
  ...changes(
    { outputs: [{ name: 'boxes', from: 'detect.boxes', datatype: 'FP32', shape: [-1] }] },
    [['outputs[].shape[]', -1, 8]],
  ),
  ...changes(
    {
      outputs: [{ name: 'boxes', from: 'boxes' }],
      steps: [{ ...step('detect', 'first'), outputMap: { boxes: 'boxes' } }],
    },
    [['steps[].name', 'detect', 'find']],
  ),
  ...changes({ steps: [{ name: 'detect', inputMap: { image: 'image' } }] }, [
    ['steps[].ensembleRef.name', 'inner-a', 'inner-b'],
  ]),
  ...changes(BUILT, [
    ['steps[].builtin.name', 'sigmoid', 'softmax'],
    ['steps[].builtin.model', undefined, 'first'],
    ['steps[].builtin.model', 'first', 'second'],
  ]),
  ...changes(
    {
      inputs: [input('image'), input('other')],
      outputs: given(['a.boxes', 'b.boxes']),
      steps: [
        step('a', 'first'),
        { ...step('b', 'first'), inputMap: { image: 'image', mask: 'other' } },
      ],
    },
    [
      ['steps[].inputMap{image}', 'image', 'other'],
      ['steps[].inputMap{mask}', undefined, 'other'],
    ],
  ),
  ...changes(READ, [
    ['steps[].inputs[]', 'detect.boxes', 'again.boxes'],
    ['steps[].inputs[]', 'detect', 'again'],
  ]),
  ...changes(
    {
      outputs: given(['detect.scores', 'read.text']),
      steps: [
        step('detect', 'first'),
        { name: 'read', modelRef: { name: 'last' }, inputMap: { boxes: 'detect.boxes' } },
      ],
    },
    [
      ['steps[].outputMap{boxes}', 'x', 'y'],
      ['steps[].outputMap', { boxes: 'x' }, {}],
    ],
  ),
  ...changes({ steps: [{ ...step('detect', 'first'), mayRunTwice: true }] }, [
    ['steps[].hedge.after', '50ms', '60ms'],
  ]),
  ...changes({ steps: [{ ...step('detect', 'first'), ...HEDGED }] }, [
    ['steps[].hedge.maxPercent', undefined, 6],
  ]),
  ...changes({}, [
    ['steps[].onError.fallback.modelRef.name', undefined, 'second'],
    ['steps[].onError.fallback.modelRef.name', 'first', 'second'],
  ]),
  ...changes({ steps: [{ ...step('detect', 'first'), ...FALLBACK }] }, [
    ['steps[].onError.fallback.modelRef.version', undefined, 1],
    ['steps[].onError.fallback.timeout', undefined, '300ms'],
  ]),
  ...changes({ steps: [{ ...step('detect', 'first'), onError: { fallback: {} } }] }, [
    ['steps[].onError.fallback.ensembleRef.name', 'inner-a', 'inner-b'],
  ]),
  ...changes(ANSWERED, [['steps[].onError.default{boxes}.value[]', 0, 1]]),
  ...changes(
    {
      steps: [
        {
          ...step('detect', 'first'),
          onError: { default: { boxes: { datatype: 'FP32', value: [0] } } },
        },
      ],
    },
    [['steps[].onError.default{boxes}.value', [0], []]],
  ),
  change(
    unaccepted('CallInvalid', /onError\.default/),
    ['steps[].onError.default', { boxes: ONE }, {}],
    { steps: [{ ...step('detect', 'first'), onError: { default: {} } }] },
  ),
  change(
    unaccepted('ShapeMismatch', /onError\.default/),
    ['steps[].onError.default{boxes}.shape', [1], []],
    ANSWERED,
  ),
  change(
    unaccepted('InvalidSpec', /got 1 elements, want 2/),
    ['steps[].onError.default{boxes}.shape[]', 1, 2],
    ANSWERED,
  ),
  change(
    unaccepted('DatatypeMismatch', /onError\.default/),
    ['steps[].onError.default{boxes}.datatype', 'FP32', 'UINT8'],
    ANSWERED,
  ),
  ...changes({ steps: [{ ...step('detect', 'first'), ...RETRIED }] }, [
    ['steps[].retry.maxRetries', 2, 3],
    ['steps[].retry.retryOn[]', 'UNAVAILABLE', 'RESOURCE_EXHAUSTED'],
    ['steps[].retry.backoff', undefined, '20ms'],
    ['steps[].retry.budgetPercent', undefined, 30],
    ['steps[].mayRunTwice', undefined, true],
  ]),
  ...changes(THREE, [['steps[].dependsOn[]', 'b', 'c']]),
  change({ at: 'server', says: /spec\.modelName.*cannot be changed/ }, [
    'modelName',
    undefined,
    'other',
  ]),
  change(unaccepted('UnknownTensor', /^steps\[0\]\(detect\)\.inputMap\[image\]: /), [
    'inputs[].name',
    'image',
    'picture',
  ]),
  change(
    unaccepted('MissingInput', /^steps\[0\]\(a\): .*want them in inputMap/),
    ['steps[].inputMap', { image: 'image' }, {}],
    THREE,
  ),
  change(unaccepted('DatatypeMismatch', /inputs\[0\]\(image\) is UINT8/), [
    'inputs[].datatype',
    'FP32',
    'UINT8',
  ]),
  change(
    unaccepted('DatatypeMismatch', /outputs\[0\]\(boxes\)/),
    ['outputs[].datatype', 'FP32', 'UINT8'],
    { outputs: [{ name: 'boxes', from: 'detect.boxes', shape: [-1] }] },
  ),
  change({ at: 'conditions' }, ['paused', undefined, true]),
]

/** The changes of the field walk for Ensembles: every field of the spec, each changed alone. */
export const ENSEMBLE_CHANGES: readonly FieldChange[] = [...GRAPH, ...REPEATED, ...EXPOSED]
