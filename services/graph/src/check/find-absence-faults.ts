import { formatShape, fromConfigDatatype, type Shape, shapeMatches } from '@tutti/tensor'
import {
  type GraphStep,
  type OutputSource,
  type Source,
  type TensorSource,
  tensorName,
  tensorsOf,
} from '../graph.ts'
import type { Checked, ConditionFault, Place } from './condition-fault.ts'
import type { TensorDefinition } from './find-tensor-faults.ts'

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
    const got = show(name, made.dataType, made.fullDims)
    const want = show('', declared.data_type, declared.dims)
    if (made.dataType !== declared.data_type) yield { reason: 'DatatypeMismatch', at, got, want }
    else if (!fits(made, declared.dims)) yield { reason: 'ShapeMismatch', at, got, want }
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
export function* absenceFaults(o: Checked): Generator<ConditionFault> {
  const { graph } = o
  const maybe = findMaybeAbsent(o)
  const isMaybe = (tensor: TensorSource): boolean => isIn(maybe, graph, tensor)
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

/** Tells whether a step makes a tensor of these names. An input may have the name of an output, and is never among them. */
function isIn(names: ReadonlySet<string>, graph: Checked['graph'], tensor: TensorSource): boolean {
  return tensor.kind === 'made' && names.has(tensorName(graph, tensor))
}

/** Finds the names of the tensors that are absent where a step was skipped. An input that is not known to be required passes nothing on. */
function findMaybeAbsent({ graph, configOf, optionalOutputsOf }: Checked): ReadonlySet<string> {
  const maybe = new Set<string>()
  const isAbsent = (from: Source): boolean => {
    const tensors = tensorsOf(from)
    return tensors.length > 0 && tensors.every((tensor) => isIn(maybe, graph, tensor))
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
