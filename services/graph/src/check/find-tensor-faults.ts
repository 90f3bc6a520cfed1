import type { DataType, ModelConfig, ModelInput } from '@tutti/model-config'
import { type Shape, shapeMatches } from '@tutti/tensor'
import { type Graph, type GraphStep, tensorName, tensorsOf } from '../graph.ts'

/** The type and shape of an ensemble tensor, as declared by the model that names it first. */
export interface TensorDefinition {
  /** Tensor of the step that names it first; absent for an input or output of the ensemble. */
  readonly at?: StepTensor
  /** Name of the ensemble for its own inputs and outputs, else of the first model that reads or makes the tensor. */
  readonly model: string
  readonly dataType: DataType
  readonly dims: Shape
  /** Shape with a leading -1 if the model batches. */
  readonly fullDims: Shape
}

/** An input or output of the model that a step runs. */
export interface StepTensor {
  readonly step: number
  readonly side: 'input' | 'output'
  /** Name that the model gives the tensor. */
  readonly name: string
}

/** The definitions of ensemble tensors, by name. */
export type TensorDefinitions = ReadonlyMap<string, TensorDefinition>

/** Finds the completed configuration of the model version that a step runs; returns undefined if it is not known. */
export type ConfigOfStep = (step: GraphStep) => ModelConfig | undefined

type DeclaredTensor = Pick<ModelInput, 'name' | 'data_type' | 'dims'>

/** A rule that the tensors of the step `at.step` break. `model` is the model that the step runs. */
export type TensorFault = { readonly model: ModelConfig; readonly at: StepTensor } & (
  | { readonly kind: 'batch' }
  | { readonly kind: 'unfed'; readonly next: TensorDefinition }
  | { readonly kind: 'unknown port' | 'several outputs'; readonly tensor: string }
  | {
      readonly kind: 'datatype' | 'shape'
      readonly tensor: string
      readonly first: TensorDefinition
      readonly next: TensorDefinition
    }
)

type Definitions = Map<string, TensorDefinition>

/**
 * Compares every step with the completed configuration of its model, and finds every broken rule in Triton's order. Steps whose
 * model is not known are left out, as are inputs whose source is not.
 *
 * @param o.partial - indexes of steps that may read more than the graph says.
 * @returns also the definitions of all ensemble tensors.
 * @see triton-semantics 1.2
 */
export function findTensorFaults(o: {
  readonly config: ModelConfig
  readonly graph: Graph
  readonly configOf: ConfigOfStep
  readonly partial?: ReadonlySet<number>
}): { readonly definitions: TensorDefinitions; readonly faults: readonly TensorFault[] } {
  const { config, graph, configOf, partial } = o
  const definitions: Definitions = new Map()
  for (const tensor of [...config.input, ...config.output]) {
    // An output without a type takes that of its tensor, once that is known.
    if (tensor.data_type === 'TYPE_INVALID' || definitions.has(tensor.name)) continue
    // The steps see the reshaped tensor; a model's own reshape is its own business.
    const dims = tensor.reshape?.shape ?? tensor.dims
    definitions.set(tensor.name, define(config, { ...tensor, dims }))
  }
  const faults = graph.steps.flatMap((step, index) => {
    const model = configOf(step)
    if (model === undefined) return []
    const compared = { step, model, index, graph, definitions, isPartial: partial?.has(index) }
    return [...batchFaults(config, compared), ...inputFaults(compared), ...outputFaults(compared)]
  })
  return { definitions, faults }
}

interface ComparedStep {
  readonly step: GraphStep
  readonly model: ModelConfig
  readonly index: number
  readonly graph: Graph
  readonly definitions: Definitions
  readonly isPartial: boolean | undefined
}

function* batchFaults(config: ModelConfig, { model, index }: ComparedStep): Generator<TensorFault> {
  if (model.max_batch_size === 0 || model.max_batch_size >= config.max_batch_size) return
  yield { kind: 'batch', model, at: { step: index, side: 'input', name: '' } }
}

function* inputFaults(o: ComparedStep): Generator<TensorFault> {
  const { step, model, graph } = o
  const fed = new Set(step.inputs.map(({ name }) => name))
  const known = step.inputs.flatMap(({ name, from }): [string, string[]][] => {
    const tensors = tensorsOf(from).filter(({ kind }) => kind !== 'unknown')
    const isKnown = tensors.length > 0 || from.kind === 'constant'
    return isKnown ? [[name, tensors.map((tensor) => tensorName(graph, tensor))]] : []
  })
  const ports = known.map(([name, [tensor = '']]): [string, string] => [name, tensor])
  const unknown = [...unknownFaults(ports, 'input', o)]
  yield* unknown
  const open = model.input.filter(({ name, optional }) => !optional && !fed.has(name))
  // A name that the model does not know was perhaps meant for an input that is open.
  const isUnfed = o.isPartial !== true && open.length > unknown.length
  const tensors = new Map(known)
  for (const declared of model.input) {
    const at = { step: o.index, side: 'input', name: declared.name } as const
    const read = tensors.get(declared.name)
    for (const tensor of read ?? []) yield* differenceFaults(o, { at, tensor, declared })
    if (read === undefined && isUnfed && !declared.optional && !fed.has(declared.name)) {
      yield { kind: 'unfed', model, at, next: define(model, declared) }
    }
  }
}

function* outputFaults(o: ComparedStep): Generator<TensorFault> {
  const made = o.step.outputs.map(({ name, tensor }): [string, string] => [name, tensor])
  yield* unknownFaults(made, 'output', o)
  for (const [name, tensor] of made) {
    const at = { step: o.index, side: 'output', name } as const
    const outputs = o.model.output.filter((output) => output.name === name)
    for (const declared of outputs) yield* differenceFaults(o, { at, tensor, declared })
    if (outputs.length > 1) yield { kind: 'several outputs', model: o.model, at, tensor }
  }
}

function* unknownFaults(
  tensors: readonly (readonly [name: string, tensor: string])[],
  side: 'input' | 'output',
  { model, index }: ComparedStep,
): Generator<TensorFault> {
  for (const [name, tensor] of tensors) {
    if (model[side].some((declared) => declared.name === name)) continue
    yield { kind: 'unknown port', model, at: { step: index, side, name }, tensor }
  }
}

/** Finds differences of shapes. A batching model's [16] is the same as [-1,16] without batching. */
function* differenceFaults(
  { model, definitions }: ComparedStep,
  o: { readonly at: StepTensor; readonly tensor: string; readonly declared: DeclaredTensor },
): Generator<TensorFault> {
  const { at, tensor } = o
  const next = { ...define(model, o.declared), at }
  const first = definitions.get(tensor)
  if (first === undefined) {
    definitions.set(tensor, next)
    return
  }
  const fault = { model, at, tensor, first, next }
  if (first.dataType !== next.dataType) {
    yield { kind: 'datatype', ...fault }
    return
  }
  const fits = shapeMatches(first.dims, next.dims) || shapeMatches(first.fullDims, next.fullDims)
  if (!fits) yield { kind: 'shape', ...fault }
}

/** Gathers what a configuration says of a tensor. `dims`: as its other side sees it, after a reshape of an ensemble's own. */
function define(model: ModelConfig, tensor: DeclaredTensor): TensorDefinition {
  const { dims } = tensor
  const fullDims = model.max_batch_size > 0 ? [-1, ...dims] : dims
  return { model: model.name, dataType: tensor.data_type, dims, fullDims }
}
