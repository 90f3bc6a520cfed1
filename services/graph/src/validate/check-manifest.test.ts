import { EnsembleManifest, type EnsembleSpec } from '@tutti/api'
import { ensembleManifest } from '@tutti/api/testing'
import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import {
  array,
  assert,
  constant,
  constantFrom,
  dictionary,
  integer,
  nat,
  oneof,
  property,
  record,
  tuple,
  uniqueArray,
} from 'fast-check'
import t from 'tap'
import { ACCEPTED_REASONS } from '../check/problem.ts'
import { fromModelConfig } from '../import/from-model-config.ts'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { readConfigGraph } from '../read/read-config.ts'
import { ensembleConfig, modelConfig, stepConfig } from '../testing/configs.ts'
import { checkOver as check, detect, detector, type Spec } from '../testing/detector-world.ts'
import { checkEnsemble, type EnsembleProblem } from './check-manifest.ts'

await t.test('an Ensemble that fits is accepted, completed', async (t) => {
  const result = check({ steps: [{ ...detect, outputMap: { crops: 'unread' } }] })
  t.match(result, {
    accepted: true,
    config: {
      name: 'e',
      output: [{ name: 'boxes', data_type: 'TYPE_FP32', dims: [-1, 4] }],
      model_transaction_policy: { decoupled: false },
    },
    graph: { steps: [{ name: 'det' }] },
    models: { detector: { name: 'detector' } },
    warnings: ["steps[0](det).outputMap[crops]: nothing reads 'unread'"],
  })
})

await t.test('each refusal has its reason, its place and what is wanted', async (t) => {
  const ocr = { name: 'ocr', modelRef: { name: 'reader' } }
  const text = { outputs: [{ name: 'text', from: 'ocr.text' }] }
  const input = { name: 'x', datatype: 'FP32', shape: [-1, 3, 32, 100] }
  const cases: [Spec, string, string][] = [
    [
      { ...text, steps: [detect, { ...ocr, inputMap: { image: 'det.crops' } }] },
      'DatatypeMismatch',
      "steps[1](ocr).inputMap[image]: 'reader' takes FP32[-1,3,32,100], det.crops is UINT8[-1,-1,3]",
    ],
    [
      { ...text, steps: [detect, { ...ocr, inputMap: { image: 'det.boxes' } }] },
      'ShapeMismatch',
      "steps[1](ocr).inputMap[image]: 'reader' takes FP32[-1,3,32,100], det.boxes is FP32[-1,4]",
    ],
    [
      { outputs: [{ name: 'boxes', from: 'det.boxes', datatype: 'INT8', shape: [-1, 4] }] },
      'DatatypeMismatch',
      "outputs[0].from: 'detector' makes FP32[-1,4], outputs[0](boxes) is INT8[-1,4]",
    ],
    [
      { steps: [{ ...detect, inputMap: { images: 'image' } }] },
      'UnknownTensor',
      "steps[0](det).inputMap[images]: 'detector' has no input 'images'; did you mean 'image'?",
    ],
    [
      { outputs: [{ name: 'boxes', from: 'det.boxs' }] },
      'UnknownTensor',
      "outputs[0].from: 'detector' has no output 'boxs'; did you mean 'boxes'?",
    ],
    [
      {
        outputs: [{ name: 'b', from: 'boxes' }],
        steps: [{ ...detect, outputMap: { b: 'boxes' } }],
      },
      'UnknownTensor',
      "steps[0](det).outputMap[b]: 'detector' has no output 'b'; outputMap goes from the model's output to the ensemble's tensor: want {boxes: b}",
    ],
    [
      { ...text, inputs: [{ ...input, shape: [1] }], steps: [{ ...ocr, inputMap: { bias: 'x' } }] },
      'MissingInput',
      "steps[0](ocr): the input 'image' of 'reader' is fed by nothing: want a tensor FP32[-1,3,32,100] in inputMap",
    ],
    [
      {
        ...text,
        inputs: [{ ...input, shape: [3, 32, 100] }],
        maxBatchSize: 9,
        steps: [{ ...ocr, inputMap: { image: 'x' } }],
      },
      'LimitExceeded',
      "maxBatchSize: got 9, want at most 8: 'reader' of steps[0](ocr) takes no larger batches",
    ],
    [
      { steps: [{ ...detect, modelRef: { name: 'detecter' } }] },
      'UnknownModel',
      "steps[0](det).modelRef.name: no Model or Ensemble serves 'detecter'; did you mean 'detector'?",
    ],
    [
      { steps: [{ ...detect, modelRef: { name: 'detector', version: 3 } }] },
      'UnknownModel',
      "steps[0](det).modelRef.version: got 3, want a version of 'detector' that is served: 1, 2",
    ],
    [
      { steps: [{ ...detect, modelRef: { name: 'nested' } }] },
      'UnknownModel',
      "steps[0](det).modelRef: 'nested' is an Ensemble; want ensembleRef",
    ],
    [
      { steps: [{ ...detect, modelRef: { name: 'later' } }] },
      'SchemaPending',
      "steps[0](det).modelRef: the signature of 'later' is not known yet; it is once the Model or Ensemble of that served name is ready",
    ],
    [
      { steps: [{ ...detect, modelRef: { name: 'absent-the-detector' } }] },
      'SchemaPending',
      "steps[0](det).modelRef: no Model or Ensemble serves 'absent-the-detector' yet; Model 'absent-the-detector' is served as 'detector'",
    ],
    [
      { steps: [{ ...detect, modelRef: { name: 'the-detector' } }] },
      'UnknownModel',
      "steps[0](det).modelRef.name: no Model or Ensemble serves 'the-detector'; Model 'the-detector' is served as 'detector'",
    ],
    [
      { steps: [{ ...detect, dependsOn: ['det'] }] },
      'CycleDetected',
      "steps[0](det).dependsOn[0]: the step 'det' would wait for itself",
    ],
  ]
  for (const [spec, reason, message] of cases) {
    t.same(check(spec), { accepted: false, reason, message }, message)
  }
})

const stream = (name: string) => ({ ...detect, name, modelRef: { name: 'decoupled' } })

await t.test('responses of decoupled models cannot be brought together', async (t) => {
  const outputs = ['a', 'b'].map((name) => ({ name, from: `${name}.boxes` }))
  const result = check({ outputs, steps: [stream('a'), stream('b')] })
  t.match(result, { accepted: false, reason: 'DecoupledInvalid', message: /^steps: / })
  const waits = { ...detect, name: 'c', dependsOn: ['a'] }
  t.match(
    check({
      outputs: [...outputs.slice(0, 1), { name: 'c', from: 'c.boxes' }],
      steps: [stream('a'), waits],
    }),
    {
      reason: 'DecoupledInvalid',
    },
  )
})

await t.test('a served name belongs to one', async (t) => {
  const old = { kind: 'Model', metadata: { name: 'old' } }
  t.same(check({}, { holder: (name) => (name === 'e' ? old : undefined) }), {
    accepted: false,
    reason: 'NameConflict',
    message: "modelName: 'e' is the served name of Model 'old'; want another",
  })
})

const COMPOSED = new Map([
  ['f', ['g']],
  ['g', ['detector', 'e']],
])
const composes = (name: string) => COMPOSED.get(name) ?? []

await t.test('no Ensemble contains itself, however far away', async (t) => {
  const steps = [{ ...detect, modelRef: undefined, ensembleRef: { name: 'f' } }]
  t.same(check({ steps }, { composes, lookup: () => 'pending' }), {
    accepted: false,
    reason: 'CycleDetected',
    message: 'steps[0](det).ensembleRef: an ensemble cannot contain itself: e -> f -> g -> e',
  })
  t.match(check({ steps: [{ ...detect, modelRef: { name: 'e' } }] }), { reason: 'CycleDetected' })
})

await t.test('Ensembles may contain Ensembles', async (t) => {
  const steps = [{ ...detect, modelRef: undefined, ensembleRef: { name: 'nested' } }]
  t.match(check({ steps }), { accepted: true, models: { nested: { name: 'nested' } } })
})

await t.test('a model without a ready version is waited for', async (t) => {
  t.match(check({}, { lookup: () => ({ config: detector, readyVersions: [] }) }), {
    reason: 'SchemaPending',
  })
  t.match(check({}, { lookup: () => ({ config: detector }) }), { accepted: true })
})

const often = <T>(usual: T, ...others: readonly T[]) =>
  oneof(
    { arbitrary: constant(usual), weight: 9 },
    { arbitrary: constantFrom(...others), weight: 2 },
  )
const someTensor = (name: string) =>
  record({
    name: constant(name),
    data_type: often<'TYPE_FP32' | 'TYPE_INT8'>('TYPE_FP32', 'TYPE_INT8'),
    dims: often([-1], [4], [8], [2, 2]),
  })
const someModel = (name: string) =>
  record({
    max_batch_size: often(0, 2, 8),
    input: tuple(someTensor('i'), someTensor('j'), often(true, false)),
    output: tuple(someTensor('p'), someTensor('q')),
    decoupled: often(false, true),
  }).map(({ input: [i, j, optional], decoupled: isStream, ...rest }) =>
    modelConfig({
      name,
      ...rest,
      input: [i, { ...j, optional }],
      model_transaction_policy: { decoupled: isStream },
    }),
  )
const someModels = tuple(someModel('m'), someModel('n')).map(
  (models) => new Map(models.map((model) => [model.name, model])),
)

const lookupIn = (models: ReadonlyMap<string, ModelConfig>) => (name: string) => {
  const config = models.get(name)
  return config === undefined ? undefined : { config, readyVersions: [1] }
}

/** References mostly to earlier steps. */
const someReference = (step: number) =>
  often(['x', 'a.p', 'b.p'][step] ?? 'c.p', 'x', 'y', 'z', 'a.q', 'b.p', 'c.p', 'd.p', 'a')

const EXTRAS: readonly Spec[] = [
  { outputMap: { p: 'y' } },
  { outputMap: { p: 'z', q: 'w' } },
  { outputMap: { y: 'w' } },
  { inputs: ['a'] },
  { inputs: ['b.q', 'a'] },
  { dependsOn: ['a'] },
  { dependsOn: ['b', 'c'] },
]
const NO_EXTRAS: Spec = {}

const someStep = (name: string, step: number) =>
  record({
    modelRef: record({ name: often('m', 'n', 'n', 'k') }),
    inputMap: oneof(
      { arbitrary: record({ i: someReference(step) }), weight: 9 },
      {
        arbitrary: dictionary(constantFrom('i', 'j', 'x', 'k'), someReference(step), {
          minKeys: 1,
        }),
        weight: 2,
      },
    ),
    extras: often(NO_EXTRAS, ...EXTRAS),
  }).map(({ extras, ...rest }) => ({ name, ...rest, ...extras }))

const someSpec = tuple(
  integer({ min: 1, max: 3 }),
  someStep('a', 0),
  someStep('b', 1),
  someStep('c', 2),
).chain(([count, ...steps]) =>
  record({
    maxBatchSize: often(0, 2, 3),
    inputs: constant([{ name: 'x', datatype: 'FP32', shape: [4] }]),
    outputs: uniqueArray(tuple(often('v', 'y'), someReference(count)), {
      minLength: 1,
      selector: ([name]) => name,
    }).map((pairs) => pairs.map(([name, from]) => ({ name, from }))),
    steps: constant(steps.slice(0, count)),
  }),
)

/** Each is one line that begins with its place in the manifest, none comes twice, and there are not more than there are places. */
function checkProblems(spec: EnsembleSpec, problems: readonly EnsembleProblem[]): void {
  const messages = new Set(problems.map(({ message }) => message))
  const places = JSON.stringify(spec).split(',').length * 2
  const isWell =
    messages.size === problems.length &&
    problems.length <= places &&
    problems.every(
      ({ reason, message }) =>
        reason in ACCEPTED_REASONS &&
        /^(steps|inputs|outputs|maxBatch)[^\n]*: [^\n]+$/.test(message),
    )
  if (!isWell) throw new Error([...messages].join('\n'))
}

await t.test('any Ensemble gets a result, and what is accepted can be planned', async (t) => {
  const reasons = new Map<string, number>()
  assert(
    property(someSpec, someModels, (spec, models) => {
      const manifest = EnsembleManifest.parse(ensembleManifest('e', spec))
      const lookup = lookupIn(models)
      const result = checkEnsemble(manifest, { lookup: (name) => lookup(name) ?? 'unknown' })
      const reason = result.accepted ? 'accepted' : result.reason
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
      if (result.accepted) planEnsemble({ ...result, lookup })
      else checkProblems(manifest.spec, [result, ...(result.others ?? [])])
    }),
    { numRuns: 500 },
  )
  for (const reason of ['accepted', 'CycleDetected', 'UnknownTensor', 'ShapeMismatch']) {
    t.ok(reasons.has(reason), `${reason} of ${JSON.stringify([...reasons])}`)
  }
})

await t.test('the result for any config.pbtxt is that of planning', async (t) => {
  const someMap = record({
    model: constantFrom('m', 'n'),
    reads: array(nat({ max: 3 }), { minLength: 1, maxLength: 2 }),
    makes: constantFrom(['p'], ['q'], ['p', 'q']),
  })
  const drafts = array(someMap, { minLength: 1, maxLength: 3 })
  let [accepted, refused] = [0, 0]
  assert(
    property(drafts, someModels, someTensor('x'), (maps, models, x) => {
      const config = configOf(maps, x)
      const planned = refusalOf(config, models)
      const manifest = importOf(config)
      // A fault that the graph alone shows is refused when it is written as a manifest.
      const result =
        manifest &&
        checkEnsemble(manifest, { lookup: (name) => lookupIn(models)(name) ?? 'unknown' })
      const isAccepted = result?.accepted === true
      if (isAccepted) accepted += 1
      else refused += 1
      if (isAccepted !== (planned === undefined)) {
        throw new Error(
          `planning says ${planned ?? 'fine'}, the result is ${JSON.stringify(result)}`,
        )
      }
    }),
    { numRuns: 500 },
  )
  t.ok(accepted > 50, `${accepted} accepted`)
  t.ok(refused > 50, `${refused} refused`)
})

/** Steps that read the request's tensor or what a step makes, mostly one before; what no step reads is given out. */
function configOf(
  maps: readonly { model: string; reads: readonly number[]; makes: readonly string[] }[],
  x: { readonly name: string },
): ModelConfig {
  const steps = maps.map(({ model, reads, makes }, index) => {
    const tensors = reads.map((from) => (from === 0 || index === 0 ? 'x' : `t${from - 1}_0`))
    const inputs = tensors.map((tensor, i): [string, string] => [i === 0 ? 'i' : 'j', tensor])
    const outputs = makes.map((output, i): [string, string] => [output, `t${index}_${i}`])
    return stepConfig(model, Object.fromEntries(inputs), Object.fromEntries(outputs))
  })
  const read = new Set(steps.flatMap((step) => Object.values(step.input_map)))
  const made = steps.flatMap((step) => Object.values(step.output_map))
  const output = made.filter((name) => !read.has(name)).map((name) => ({ name, dims: [-1] }))
  return ensembleConfig({ name: 'e', input: [x], output, steps })
}

function importOf(config: ModelConfig): EnsembleManifest | undefined {
  try {
    const o = { resourceName: 'e', servedName: 'e', isEnsemble: () => false }
    return EnsembleManifest.parse(fromModelConfig(config, o))
  } catch (error) {
    const { reason, message } = ServeError.from(error)
    if (reason !== 'ENSEMBLE_INVALID' && reason !== 'UNSUPPORTED')
      throw new Error(message, { cause: error })
    return undefined
  }
}

function refusalOf(
  config: ModelConfig,
  models: ReadonlyMap<string, ModelConfig>,
): string | undefined {
  try {
    planEnsemble({ config, graph: readConfigGraph(config), lookup: lookupIn(models) })
    return undefined
  } catch (error) {
    return ServeError.from(error).message
  }
}
