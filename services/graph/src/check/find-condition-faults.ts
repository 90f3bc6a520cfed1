import type { ModelConfig } from '@tutti/model-config'
import {
  type Datatype,
  formatShape,
  fromConfigDatatype,
  type Shape,
  shapeMatches,
} from '@tutti/tensor'
import { compileCondition, MAX_CONDITION_ELEMENTS, tensorsOfCondition } from '../conditions.ts'
import type { Constant } from '../constant.ts'
import {
  type Graph,
  type GraphStep,
  type OutputSource,
  type Source,
  type TensorSource,
  tensorName,
  tensorsOf,
} from '../graph.ts'
import type { ConfigOfStep, TensorDefinition, TensorDefinitions } from './find-tensor-faults.ts'
import type { AcceptedReason } from './problem.ts'

/*
 * The rules of constants, conditions and absent tensors, for which config.pbtxt has no words.
 */

/** Where a rule is broken. */
export type Place =
  | { readonly step: number; readonly field: string }
  | { readonly output: number; readonly field: string }
  | { readonly input: string; readonly field: string }

export interface ConditionFault {
  readonly reason: AcceptedReason
  readonly at: Place
  readonly got: string
  readonly want: string
}

export interface Checked {
  readonly config: ModelConfig
  readonly graph: Graph
  /** Configurations of models as the graph sees them, as far as they are known. */
  readonly configOf: ConfigOfStep
  /** The models' own configurations. */
  readonly modelOf: ConfigOfStep
  readonly definitions: TensorDefinitions
  /** Lists the outputs that responses of a step's model may lack. */
  readonly optionalOutputsOf: (step: GraphStep) => readonly string[]
}

/** Finds every broken rule of conditions, constants and absent tensors. What cannot be told yet is left out. */
export function findConditionFaults(o: Checked): readonly ConditionFault[] {
  const { graph } = o
  return [
    ...graph.steps.flatMap((step, index) => [
      ...conditionFaults(o, step, index),
      ...constantFaults(o, step, index),
      ...answerFaults(o, step, index),
    ]),
    ...defaultFaults(o),
    ...absenceFaults(o),
  ]
}

/** Names the place of a fault in a text. */
export function describePlace({ steps, outputs }: Graph, at: Place): string {
  if ('step' in at) return `step '${steps[at.step]?.name}', ${at.field}`
  if ('output' in at) return `output '${outputs[at.output]?.name}', ${at.field}`
  return `input '${at.input}', ${at.field}`
}

/** Finds the datatypes of the tensors that a condition reads, by the names that they have there. */
export function datatypesOf(
  graph: Graph,
  controls: NonNullable<GraphStep['controls']>,
  definitions: TensorDefinitions,
): ReadonlyMap<string, Datatype> {
  return new Map(
    controls.flatMap(({ name, from }): [string, Datatype][] => {
      const { dataType = '' } = definitions.get(tensorName(graph, from)) ?? {}
      const datatype = fromConfigDatatype(dataType)
      return datatype === undefined ? [] : [[name, datatype]]
    }),
  )
}

function* conditionFaults(
  { config, graph, definitions }: Checked,
  { when, controls = [] }: GraphStep,
  step: number,
): Generator<ConditionFault> {
  if (when === undefined) return
  const at = { step, field: 'when' }
  const reason = 'ConditionInvalid'
  if (config.max_batch_size > 0) {
    const got = `a condition in an Ensemble with batches of up to ${config.max_batch_size}`
    yield { reason, at, got, want: 'maxBatchSize 0: the rows of a batch may differ in it' }
    return
  }
  try {
    compileCondition(when, datatypesOf(graph, controls, definitions))
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    yield { reason, at, got: `'${when}': ${problem}`, want: 'a condition in CEL' }
  }
  const read = tensorsOfCondition(when)
  for (const { name, from } of controls) {
    if (!read.includes(name)) continue
    const shape = definitions.get(tensorName(graph, from))?.fullDims ?? []
    const least = shape.reduce((count, extent) => count * Math.max(1, extent), 1)
    if (least <= MAX_CONDITION_ELEMENTS) continue
    const got = `tensors["${name}"] of the shape ${formatShape(shape)}`
    yield { reason, at, got, want: `at most ${MAX_CONDITION_ELEMENTS} elements` }
  }
}

function* constantFaults(
  { config, configOf }: Checked,
  step: GraphStep,
  index: number,
): Generator<ConditionFault> {
  const model = configOf(step)
  for (const { name, from } of step.inputs) {
    if (from.kind !== 'constant') continue
    const declared = model?.input.find((input) => input.name === name)
    if (model === undefined || declared === undefined) continue
    const at = { step: index, field: `constants[${name}]` }
    const want = `what '${model.name}' takes`
    const batches = model.max_batch_size > 0 && config.max_batch_size === 0
    const shapes = [declared.dims, ...(batches ? [[-1, ...declared.dims]] : [])]
    yield* valueFaults(from.constant, { at, want, dataType: declared.data_type, shapes })
  }
}

/** Compares the values that stand in for the outputs of a step that has failed with those outputs. */
function* answerFaults(o: Checked, step: GraphStep, index: number): Generator<ConditionFault> {
  const { onError } = step.call ?? {}
  if (onError?.kind !== 'default') return
  const field = 'onError.default'
  const wanted = step.outputs.map(({ name }) => `'${name}'`).join(', ')
  for (const { name } of step.outputs) {
    if (onError.outputs.some((one) => one.name === name)) continue
    const at = { step: index, field }
    yield { reason: 'CallInvalid', at, got: `no value of '${name}'`, want: `those of ${wanted}` }
  }
  for (const { name, value } of onError.outputs) {
    const at = { step: index, field: `${field}[${name}]` }
    if (step.outputs.some((output) => output.name === name)) {
      yield* answerTypeFaults(o, step, { at, name, value })
    } else {
      yield { reason: 'UnknownTensor', at, got: 'what nothing reads', want: `values of ${wanted}` }
    }
  }
}

function* answerTypeFaults(
  { config, configOf }: Checked,
  step: GraphStep,
  { at, name, value }: { readonly at: Place; readonly name: string; readonly value: Constant },
): Generator<ConditionFault> {
  const model = configOf(step)
  const declared = model?.output.find((output) => output.name === name)
  if (model === undefined || declared === undefined) return
  const batches = model.max_batch_size > 0 && config.max_batch_size === 0
  const shapes = [declared.dims, ...(batches ? [[-1, ...declared.dims]] : [])]
  const want = `what '${model.name}' makes`
  yield* valueFaults(value, { at, want, dataType: declared.data_type, shapes })
}

function* defaultFaults({ config, graph }: Checked): Generator<ConditionFault> {
  for (const [name, value] of Object.entries(graph.defaults ?? {})) {
    const input = config.input.find((one) => one.name === name)
    if (input === undefined) continue
    const at = { input: name, field: 'default' }
    yield* valueFaults(value, {
      at,
      want: 'its own',
      dataType: input.data_type,
      shapes: [input.dims],
    })
  }
}

/** Finds what is wrong with the type of a value. */
export function* valueFaults(
  { datatype, shape }: Constant,
  o: {
    readonly at: Place
    readonly want: string
    readonly dataType: string
    readonly shapes: readonly Shape[]
  },
): Generator<ConditionFault> {
  const { at, shapes } = o
  const wanted = fromConfigDatatype(o.dataType)
  if (wanted !== undefined && wanted !== datatype) {
    yield { reason: 'DatatypeMismatch', at, got: datatype, want: `${wanted}, ${o.want}` }
  } else if (!shapes.some((one) => shapeMatches(one, shape))) {
    const want = `${shapes.map(formatShape).join(' or ')}, ${o.want}`
    yield { reason: 'ShapeMismatch', at, got: `the shape ${formatShape(shape)}`, want }
  }
}

/** Compares the types of an output with those of the tensors of which it is the first. */
function* outputFaults(o: Checked, from: OutputSource, output: number): Generator<ConditionFault> {
  if (from.kind !== 'firstOf') return
  const { config, graph, definitions } = o
  const declared = config.output[output]
  if (declared === undefined) return
  for (const tensor of from.tensors) {
    const name = tensorName(graph, tensor)
    const made = definitions.get(name)
    if (made === undefined || declared.data_type === 'TYPE_INVALID') continue
    const at = { output, field: 'firstOf' }
    if (made.dataType !== declared.data_type) {
      yield {
        reason: 'DatatypeMismatch',
        at,
        got: show(name, made.dataType, made.fullDims),
        want: show('', declared.data_type, declared.dims),
      }
    } else if (!fits(made, declared.dims)) {
      yield {
        reason: 'ShapeMismatch',
        at,
        got: show(name, made.dataType, made.fullDims),
        want: show('', declared.data_type, declared.dims),
      }
    }
  }
}

function fits(made: TensorDefinition, dims: Shape): boolean {
  return shapeMatches(made.dims, dims) || shapeMatches(made.fullDims, dims)
}

function show(name: string, dataType: string, dims: Shape): string {
  const type = `${fromConfigDatatype(dataType) ?? dataType}${formatShape(dims)}`
  return name === '' ? type : `'${name}' of ${type}`
}

/** Finds outputs that some responses would lack, and tensors that `firstOf` never comes to. */
function* absenceFaults(o: Checked): Generator<ConditionFault> {
  const { graph } = o
  const maybe = findMaybeAbsent(o)
  const isMaybe = (tensor: TensorSource): boolean => maybe.has(tensorName(graph, tensor))
  const unreached = (from: Source): TensorSource | undefined => {
    const tensors = tensorsOf(from)
    const sure = tensors.findIndex((tensor) => !isMaybe(tensor))
    return from.kind === 'firstOf' && sure !== -1 ? tensors[sure + 1] : undefined
  }
  const unreachedFault = (at: Place, tensor: TensorSource): ConditionFault => {
    const got = `'${tensorName(graph, tensor)}' behind a tensor that is always there`
    return {
      reason: 'ConditionInvalid',
      at,
      got,
      want: 'tensors of steps that may be skipped before it',
    }
  }
  for (const [step, { inputs }] of graph.steps.entries()) {
    for (const { name, from } of inputs) {
      const tensor = unreached(from)
      if (tensor !== undefined) yield unreachedFault({ step, field: `firstOf[${name}]` }, tensor)
    }
  }
  for (const [output, { from, optional }] of graph.outputs.entries()) {
    yield* outputFaults(o, from, output)
    const tensor = unreached(from)
    if (tensor !== undefined) yield unreachedFault({ output, field: 'firstOf' }, tensor)
    // Which of several steps are skipped is known only when they are.
    const [only] = tensorsOf(from)
    if (optional === true || from.kind === 'firstOf' || only === undefined || !isMaybe(only))
      continue
    const got = `'${tensorName(graph, only)}', which a step that may be skipped makes`
    const want = 'optional: true, or firstOf with another tensor'
    yield { reason: 'OutputInvalid', at: { output, field: 'from' }, got, want }
  }
}

/** Finds the names of the tensors that are absent where a step was skipped. An input that is not known to be required passes nothing on. */
function findMaybeAbsent({ graph, configOf, optionalOutputsOf }: Checked): ReadonlySet<string> {
  const maybe = new Set<string>()
  const isAbsent = (from: Source): boolean => {
    const tensors = tensorsOf(from)
    return tensors.length > 0 && tensors.every((tensor) => maybe.has(tensorName(graph, tensor)))
  }
  const mayBeSkipped = (step: GraphStep): boolean => {
    if (step.when !== undefined) return true
    const model = configOf(step)
    return step.inputs.some(({ name, from }) => {
      const declared = model?.input.find((input) => input.name === name)
      return declared?.optional === false && isAbsent(from)
    })
  }
  // Each turn finds one more, or is the last.
  for (let known = -1; known < maybe.size; ) {
    known = maybe.size
    for (const step of graph.steps) {
      const withheld = optionalOutputsOf(step)
      const isSkipped = mayBeSkipped(step)
      for (const { name, tensor } of step.outputs) {
        if (isSkipped || withheld.includes(name)) maybe.add(tensor)
      }
    }
  }
  return maybe
}
