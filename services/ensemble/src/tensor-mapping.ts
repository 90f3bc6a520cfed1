import { ServeError } from '@tutti/errors'
import type { DataType, EnsembleStep, ModelConfig, ModelInput } from '@tutti/model-config'
import { formatShape, type Shape, shapeMatches } from '@tutti/tensor'
import type { ConfigOfStep } from './composing-models.ts'

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

type DeclaredTensor = Pick<ModelInput, 'name' | 'data_type' | 'dims'>

/** A rule that the maps of the step `at.step` break. `model` is the model that the step runs. */
export type MappingFault = { readonly model: ModelConfig; readonly at: StepTensor } & (
  | { readonly kind: 'batch' }
  | { readonly kind: 'unmapped'; readonly next: TensorDefinition }
  | { readonly kind: 'unknown' | 'repeated'; readonly tensor: string }
  | {
      readonly kind: 'datatype' | 'shape'
      readonly tensor: string
      readonly first: TensorDefinition
      readonly next: TensorDefinition
    }
)

type Definitions = Map<string, TensorDefinition>

/**
 * Checks the maps of every step against the models' completed configurations.
 *
 * @param configOf - finds the configuration of every step.
 * @returns the definitions of all ensemble tensors.
 * @throws ServeError ENSEMBLE_INVALID with Triton's text for the first broken rule, in Triton's order.
 * @see triton-semantics 1.2
 */
export function checkTensorMapping(config: ModelConfig, configOf: ConfigOfStep): TensorDefinitions {
  const { definitions, faults } = findMappingFaults(config, configOf)
  const [fault] = faults
  if (fault === undefined) return definitions
  throw new ServeError('ENSEMBLE_INVALID', textOf(config, fault), {
    details: { ensemble: config.name, model: fault.model.name },
  })
}

/**
 * Reads the maps of all steps, and finds every broken rule in Triton's order. Steps whose configuration is not known are left
 * out.
 */
export function findMappingFaults(
  config: ModelConfig,
  configOf: ConfigOfStep,
): { readonly definitions: TensorDefinitions; readonly faults: readonly MappingFault[] } {
  const definitions: Definitions = new Map()
  for (const tensor of [...config.input, ...config.output]) {
    // The steps see the reshaped tensor; a model's own reshape is its own business.
    const dims = tensor.reshape?.shape ?? tensor.dims
    if (definitions.has(tensor.name)) continue
    definitions.set(tensor.name, define(config, { ...tensor, dims }))
  }
  const steps = [...(config.ensemble_scheduling?.step.entries() ?? [])]
  const faults = steps.flatMap(([index, step]) => {
    const model = configOf(step)
    if (model === undefined) return []
    const o = { model, index, definitions }
    return [...batchFaults(config, o), ...inputFaults(step, o), ...outputFaults(step, o)]
  })
  return { definitions, faults }
}

interface StepMapping {
  readonly model: ModelConfig
  readonly index: number
  readonly definitions: Definitions
}

function* batchFaults(config: ModelConfig, { model, index }: StepMapping): Generator<MappingFault> {
  if (model.max_batch_size === 0 || model.max_batch_size >= config.max_batch_size) return
  yield { kind: 'batch', model, at: { step: index, side: 'input', name: '' } }
}

function* inputFaults({ input_map: map }: EnsembleStep, o: StepMapping): Generator<MappingFault> {
  const unknown = [...unknownFaults(map, 'input', o)]
  yield* unknown
  const open = o.model.input.filter(({ name, optional }) => !optional && !Object.hasOwn(map, name))
  // A name that the model does not know was perhaps meant for an input that is open.
  const isMissing = open.length > unknown.length
  for (const declared of o.model.input) {
    const at = { step: o.index, side: 'input', name: declared.name } as const
    const tensor = Object.hasOwn(map, declared.name) ? map[declared.name] : undefined
    if (tensor !== undefined) yield* differenceFaults(o, { at, tensor, declared })
    else if (isMissing && !declared.optional) {
      yield { kind: 'unmapped', model: o.model, at, next: define(o.model, declared) }
    }
  }
}

function* outputFaults({ output_map: map }: EnsembleStep, o: StepMapping): Generator<MappingFault> {
  yield* unknownFaults(map, 'output', o)
  for (const [name, tensor] of Object.entries(map)) {
    const at = { step: o.index, side: 'output', name } as const
    const outputs = o.model.output.filter((output) => output.name === name)
    for (const declared of outputs) yield* differenceFaults(o, { at, tensor, declared })
    if (outputs.length > 1) yield { kind: 'repeated', model: o.model, at, tensor }
  }
}

function* unknownFaults(
  map: Readonly<Record<string, string>>,
  side: 'input' | 'output',
  { model, index }: StepMapping,
): Generator<MappingFault> {
  for (const [name, tensor] of Object.entries(map)) {
    if (model[side].some((declared) => declared.name === name)) continue
    yield { kind: 'unknown', model, at: { step: index, side, name }, tensor }
  }
}

/** Finds differences of shapes. A batching model's [16] is the same as [-1,16] without batching. */
function* differenceFaults(
  { model, definitions }: StepMapping,
  o: { readonly at: StepTensor; readonly tensor: string; readonly declared: DeclaredTensor },
): Generator<MappingFault> {
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

/** Returns Triton's text of a fault. */
function textOf(config: ModelConfig, fault: MappingFault): string {
  const { model, at } = fault
  const prefix = `in ensemble ${config.name}, `
  switch (fault.kind) {
    case 'batch':
      return `ensemble ${config.name} allows maximum batch size ${config.max_batch_size}, but it contains model ${model.name} which only allows maximum batch size to be ${model.max_batch_size}`
    case 'unmapped':
      return `${prefix}input ${at.name} in model ${model.name} is not mapped to any ensemble tensors`
    case 'unknown': {
      const mapping = at.side === 'input' ? 'mapping to' : 'mapped from'
      return `${prefix}ensemble tensor ${fault.tensor} is ${mapping} non-existing ${at.side} ${at.name} in model ${model.name}`
    }
    case 'repeated':
      return `${prefix}multiple outputs in model ${model.name} are mapped to the same ensemble tensor ${fault.tensor}`
    case 'datatype':
    case 'shape':
  }
  const isShape = fault.kind === 'shape'
  const [first, next] = [fault.first, fault.next].map(
    (one) =>
      `${isShape ? formatShape(one.fullDims) : one.dataType} is inferred from model ${one.model}`,
  )
  return `${prefix}ensemble tensor ${fault.tensor}: inconsistent ${isShape ? 'shape' : 'data type'}: ${first} while ${next}`
}
