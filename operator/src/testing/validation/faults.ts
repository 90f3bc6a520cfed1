import type { Dice } from '@tutti/graph/testing'
import type { PlainObject } from '@tutti/kube/testing'

/** A fault that `act` puts into the manifests of a namespace. If no manifest fits, `act` changes nothing. */
export interface Fault {
  readonly name: string
  readonly act: (manifests: PlainObject[], roll: Dice) => void
}

type Act<T> = (part: T, roll: Dice, manifests: readonly PlainObject[]) => void

function oneOf<T>(roll: Dice, among: readonly T[] | undefined): T | undefined {
  return among?.[roll(among.length || 1)]
}

const ofKind = (manifests: readonly PlainObject[], kind: string): readonly PlainObject[] =>
  manifests.filter((manifest) => manifest['kind'] === kind)

const servedNameOf = ({ metadata, spec }: PlainObject): string => spec.modelName ?? metadata.name

function toModel(name: string, act: Act<PlainObject>): Fault {
  return {
    name,
    act: (manifests, roll) => {
      const model = oneOf(roll, ofKind(manifests, 'Model'))
      if (model !== undefined) act(model['spec'], roll, manifests)
    },
  }
}

function toEnsemble(name: string, act: Act<PlainObject>): Fault {
  return {
    name,
    act: (manifests, roll) => {
      const ensemble = oneOf(roll, ofKind(manifests, 'Ensemble'))
      if (ensemble !== undefined) act(ensemble['spec'], roll, manifests)
    },
  }
}

/** @param act - gets a step, and all steps of its Ensemble. */
function toStep(
  name: string,
  act: (step: PlainObject, roll: Dice, steps: readonly PlainObject[]) => void,
): Fault {
  return toEnsemble(name, ({ steps }, roll) => {
    const step: PlainObject | undefined = oneOf(roll, steps)
    if (step !== undefined) act(step, roll, steps)
  })
}

/** Only steps that run a Model can be hedged. */
function runEnsemble(step: PlainObject, name: string): void {
  delete step['modelRef']
  delete step['builtin']
  delete step['hedge']
  step['ensembleRef'] = { name }
}

/** @param act - gets the inputMap, and an input in it. */
function toRead(
  name: string,
  act: (o: {
    readonly map: Record<string, string>
    readonly input: string
    readonly roll: Dice
    readonly steps: readonly PlainObject[]
  }) => void,
): Fault {
  return toStep(name, ({ inputMap: map }, roll, steps) => {
    const input = oneOf(roll, Object.keys(map ?? {}))
    if (input !== undefined) act({ map, input, roll, steps })
  })
}

const tensorsOf = ({ inputs = [], outputs = [] }: PlainObject): PlainObject[] =>
  [...inputs, ...outputs].filter(({ datatype }: PlainObject) => datatype !== undefined)

const changeDatatype: Act<PlainObject> = (spec, roll) => {
  const tensor = oneOf(roll, tensorsOf(spec))
  if (tensor !== undefined) tensor['datatype'] = tensor['datatype'] === 'FP32' ? 'INT64' : 'FP32'
}

const changeShape: Act<PlainObject> = (spec, roll) => {
  const tensor = oneOf(roll, tensorsOf(spec))
  if (tensor !== undefined) tensor['shape'] = roll(2) === 0 ? [5] : [...tensor['shape'], 2]
}

const WRONG_REFERENCES = ['nothing', 'nothing.a', 's0', 's0.nothing', 's1.a', 'x0', 'x00'] as const

export const FAULTS: readonly Fault[] = [
  toModel('a Model has another datatype', changeDatatype),
  toModel('a Model has another shape', changeShape),
  toModel('a Model takes other batches', (spec, roll) => void (spec['maxBatchSize'] = roll(3))),
  toModel('a Model serves other versions', (spec, roll) => {
    spec['versionPolicy'] = [
      { all: {} },
      { latest: { numVersions: 1 + roll(3) } },
      { specific: { versions: [1 + roll(4)] } },
    ][roll(3)]
  }),
  toModel('a Model leaves its tensors to be discovered', (spec, roll) => {
    delete spec[roll(2) === 0 ? 'inputs' : 'outputs']
  }),
  {
    name: 'a manifest is missing',
    act: (manifests, roll) => void manifests.splice(roll(manifests.length), 1),
  },
  {
    name: 'two have one served name',
    act: (manifests, roll) => {
      const [one, other] = [oneOf(roll, manifests), oneOf(roll, manifests)]
      if (one !== undefined && other !== undefined) one['spec'].modelName = servedNameOf(other)
    },
  },
  toEnsemble('an Ensemble has another datatype', changeDatatype),
  toEnsemble('an Ensemble has another shape', changeShape),
  toEnsemble('an Ensemble takes other batches', (spec, roll) => {
    spec['maxBatchSize'] = [1, 16, 16][roll(3)]
  }),
  toEnsemble('nothing reads an input', ({ inputs }) => {
    inputs.push({ name: `unread${inputs.length}`, datatype: 'FP32', shape: [4] })
  }),
  toEnsemble('an input has the name of a step’s output', ({ inputs, steps }, roll) => {
    const input = oneOf<PlainObject>(roll, inputs)
    const step = oneOf<PlainObject>(roll, steps)
    if (input === undefined || step === undefined) return
    const [old, name] = [input['name'], `${step['name']}.a`]
    // No two inputs can be named alike, which another fault may have begun.
    if (inputs.some((one: PlainObject) => one['name'] === name)) return
    input['name'] = name
    for (const { inputMap = {} } of steps as PlainObject[]) {
      for (const [key, reference] of Object.entries(inputMap)) {
        if (reference === old) inputMap[key] = name
      }
    }
  }),
  toEnsemble('an output is given out twice', ({ outputs }, roll) => {
    const output = oneOf<PlainObject>(roll, outputs)
    if (output !== undefined) outputs.push({ ...output, name: `again${outputs.length}` })
  }),
  toEnsemble('an output is not given out', ({ outputs }, roll) => {
    if (outputs.length > 1) outputs.splice(roll(outputs.length), 1)
  }),
  toEnsemble('an output is an input, or nothing', ({ outputs, inputs }, roll) => {
    const output = oneOf<PlainObject>(roll, outputs)
    const from = roll(2) === 0 ? inputs[0]?.name : oneOf(roll, WRONG_REFERENCES)
    if (output !== undefined && from !== undefined) output['from'] = from
  }),
  toStep('a step runs what is not there', ({ modelRef, ensembleRef, builtin }) => {
    ;(modelRef ?? ensembleRef ?? builtin).name += 'x'
  }),
  toStep('a step runs a built-in', (step, roll) => {
    delete step['modelRef']
    delete step['ensembleRef']
    delete step['hedge']
    step['builtin'] = oneOf<PlainObject>(roll, [
      { name: 'sigmoid' },
      { name: 'cast', datatype: 'FP32' },
      { name: 'softmax', axis: 3 },
      { name: 'labelLookup', file: 'labels.txt' },
    ])
    const [reference] = Object.values(step['inputMap'] ?? {})
    if (reference !== undefined && roll(2) === 0) step['inputMap'] = { input: reference }
  }),
  toStep('a step takes a Model for an Ensemble, or the other way round', (step) => {
    const { modelRef, ensembleRef } = step
    if (step['builtin'] !== undefined) return
    delete step['ensembleRef']
    if (modelRef === undefined) step['modelRef'] = ensembleRef
    else runEnsemble(step, modelRef.name)
  }),
  toEnsemble('Ensembles contain each other', ({ steps }, roll, manifests) => {
    const step = oneOf<PlainObject>(roll, steps)
    const other = oneOf(roll, ofKind(manifests, 'Ensemble'))
    if (step === undefined || other === undefined) return
    runEnsemble(step, servedNameOf(other))
  }),
  toStep('a step wants a version', ({ modelRef }, roll) => {
    if (modelRef !== undefined) modelRef.version = 1 + roll(4)
  }),
  {
    name: 'all steps are hedged, also of models that cannot be',
    act: (manifests) => {
      for (const { spec } of ofKind(manifests, 'Ensemble')) {
        for (const step of spec.steps)
          if (step.modelRef) Object.assign(step, { hedge: { after: '20ms' }, mayRunTwice: true })
      }
    },
  },
  toStep('a step has a condition', (step, roll) => {
    const conditions = ['true', 'tensors["x0"][0] > 0.5', 'score > 1.0', 'tensors["x0"][0] > "a"']
    step['when'] = oneOf(roll, conditions)
  }),
  toStep('a step repeats', (step, roll) => {
    const [input] = Object.keys(step['inputMap'] ?? {})
    if (input === undefined) return
    const output = oneOf(roll, ['a', 'b', 'nothing'])
    step['loop'] = { carry: { [input]: `${step['name']}.${output}` }, maxIterations: 3 }
  }),
  toStep('a step waits for another', (step, roll, steps) => {
    step['dependsOn'] = [roll(6) === 0 ? 'missing' : oneOf(roll, steps)?.['name']]
  }),
  toEnsemble('nothing reads what a step makes', ({ steps }, roll) => {
    const step = oneOf<PlainObject>(roll, steps)
    if (step === undefined) return
    const { outputMap: _, ...copy } = structuredClone(step)
    steps.push({ ...copy, name: `copy${steps.length}` })
  }),
  toStep('a step has another name', (step) => void (step['name'] += '-renamed')),
  toStep('a step reads all of another', (step, roll, steps) => {
    step['inputs'] = [roll(6) === 0 ? 'missing' : oneOf(roll, steps)?.['name']]
  }),
  toStep('a step makes what is there', (step, roll) => {
    const output = ['a', 'b', 'nothing'][roll(3)] ?? ''
    const name = ['x0', 's0_a', 's0.a', 'y0', 'fresh'][roll(5)] ?? ''
    step['outputMap'] = { ...step['outputMap'], [output]: name }
  }),
  toStep('an outputMap is written the other way round', (step) => {
    const turned = Object.entries(step['outputMap'] ?? {}).map(([a, b]) => [b, a])
    if (turned.length > 0) step['outputMap'] = Object.fromEntries(turned)
  }),
  toRead('a step is fed too little', ({ map, input }) => void delete map[input]),
  toStep('a step is fed twice', (step, roll, steps) => {
    const [input] = Object.keys(step['inputMap'] ?? {})
    if (input !== undefined) step['inputs'] = [`${oneOf(roll, steps)?.['name']}.${input}`]
  }),
  toRead('an inputMap is written the other way round', ({ map, input }) => {
    const reference = map[input] ?? ''
    delete map[input]
    map[reference] = input
  }),
  toRead('a step feeds an input that its model lacks', ({ map, input, roll }) => {
    map[roll(2) === 0 ? `${input}x` : 'nothing'] = map[input] ?? ''
  }),
  toRead('a step reads nothing that there is', ({ map, input, roll }) => {
    map[input] = oneOf(roll, WRONG_REFERENCES) ?? ''
  }),
  toRead('a step reads what comes later', ({ map, input, steps }) => {
    map[input] = `${steps.at(-1)?.['name']}.a`
  }),
]
