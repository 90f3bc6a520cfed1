import { ServeError } from '@tutti/errors'
import type { DataType, EnsembleStep, ModelConfig } from '@tutti/model-config'
import { formatShape, type Shape, shapeMatches } from '@tutti/tensor'

/** What is known of an ensemble tensor, from whoever named it first. */
export interface TensorDefinition {
  /** The ensemble for its own inputs and outputs, else the first model that reads or makes it. */
  readonly model: string
  readonly dataType: DataType
  readonly dims: Shape
  /** With a leading -1 if the model batches. */
  readonly fullDims: Shape
}

/** By the ensemble tensor's name. */
export type TensorDefinitions = ReadonlyMap<string, TensorDefinition>

interface DeclaredTensor {
  readonly name: string
  readonly data_type: DataType
  readonly dims: Shape
  readonly reshape?: { readonly shape: Shape }
}

/**
 * Checks the maps of every step against the models' completed configs.
 *
 * @param models - completed configs by name; every step's model is among them.
 * @throws ServeError ENSEMBLE_INVALID with Triton's text for the first broken rule, in Triton's order.
 * @see triton-semantics 1.2
 */
export function checkTensorMapping(
  config: ModelConfig,
  models: ReadonlyMap<string, ModelConfig>,
): TensorDefinitions {
  const definitions = new Map<string, TensorDefinition>()
  for (const tensor of [...config.input, ...config.output]) {
    // The steps see the reshaped tensor; a model's own reshape is its own business.
    const dims = tensor.reshape?.shape ?? tensor.dims
    if (definitions.has(tensor.name)) continue
    definitions.set(tensor.name, define(config, { ...tensor, dims }))
  }
  for (const step of config.ensemble_scheduling?.step ?? []) {
    const model = models.get(step.model_name)
    if (model === undefined) continue
    checkBatchCeiling(config, model)
    checkInputs(config, step, model, definitions)
    checkOutputs(config, step, model, definitions)
  }
  return definitions
}

function checkBatchCeiling(config: ModelConfig, model: ModelConfig): void {
  if (model.max_batch_size === 0 || model.max_batch_size >= config.max_batch_size) return
  const ceiling = `allows maximum batch size ${config.max_batch_size}`
  throw invalid(
    config,
    model.name,
    `ensemble ${config.name} ${ceiling}, but it contains model ${model.name} which only allows maximum batch size to be ${model.max_batch_size}`,
  )
}

function checkInputs(
  config: ModelConfig,
  step: EnsembleStep,
  model: ModelConfig,
  definitions: Map<string, TensorDefinition>,
): void {
  const prefix = `in ensemble ${config.name}, `
  const known = new Set(model.input.map((input) => input.name))
  for (const [input, tensor] of Object.entries(step.input_map)) {
    if (known.has(input)) continue
    throw invalid(
      config,
      step.model_name,
      `${prefix}ensemble tensor ${tensor} is mapping to non-existing input ${input} in model ${step.model_name}`,
    )
  }
  for (const input of model.input) {
    const tensor = mapped(step.input_map, input.name)
    if (tensor !== undefined) {
      checkConsistent(config, tensor, define(model, input), definitions)
    } else if (!input.optional) {
      throw invalid(
        config,
        step.model_name,
        `${prefix}input ${input.name} in model ${step.model_name} is not mapped to any ensemble tensors`,
      )
    }
  }
}

function checkOutputs(
  config: ModelConfig,
  step: EnsembleStep,
  model: ModelConfig,
  definitions: Map<string, TensorDefinition>,
): void {
  const prefix = `in ensemble ${config.name}, `
  const entries = Object.entries(step.output_map)
  const known = new Set(model.output.map((output) => output.name))
  for (const [output, tensor] of entries) {
    if (known.has(output)) continue
    throw invalid(
      config,
      step.model_name,
      `${prefix}ensemble tensor ${tensor} is mapped from non-existing output ${output} in model ${step.model_name}`,
    )
  }
  for (const [name, tensor] of entries) {
    const declared = model.output.filter((output) => output.name === name)
    for (const output of declared) {
      checkConsistent(config, tensor, define(model, output), definitions)
    }
    if (declared.length > 1) {
      throw invalid(
        config,
        step.model_name,
        `${prefix}multiple outputs in model ${step.model_name} are mapped to the same ensemble tensor ${tensor}`,
      )
    }
  }
}

function mapped(map: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(map, name) ? map[name] : undefined
}

/** What a configuration says of a tensor. `dims`: as its other side sees it, after a reshape of an ensemble's own. */
export function define(model: ModelConfig, tensor: DeclaredTensor): TensorDefinition {
  const { dims } = tensor
  const fullDims = model.max_batch_size > 0 ? [-1, ...dims] : dims
  return { model: model.name, dataType: tensor.data_type, dims, fullDims }
}

/** What keeps two definitions from being of one tensor. A batching model's [16] is the same as [-1,16] without batching. */
export function findDifference(
  first: TensorDefinition,
  next: TensorDefinition,
): 'datatype' | 'shape' | undefined {
  if (first.dataType !== next.dataType) return 'datatype'
  const fits = shapeMatches(first.dims, next.dims) || shapeMatches(first.fullDims, next.fullDims)
  return fits ? undefined : 'shape'
}

function checkConsistent(
  config: ModelConfig,
  tensor: string,
  definition: TensorDefinition,
  definitions: Map<string, TensorDefinition>,
): void {
  const first = definitions.get(tensor)
  if (first === undefined) {
    definitions.set(tensor, definition)
    return
  }
  const where = `in ensemble ${config.name}, ensemble tensor ${tensor}: `
  const inferred = (a: string, b: string): string =>
    `${a} is inferred from model ${first.model} while ${b} is inferred from model ${definition.model}`
  const difference = findDifference(first, definition)
  if (difference === undefined) return
  if (difference === 'datatype') {
    const types = inferred(first.dataType, definition.dataType)
    throw invalid(config, definition.model, `${where}inconsistent data type: ${types}`)
  }
  const shapes = inferred(formatShape(first.fullDims), formatShape(definition.fullDims))
  throw invalid(config, definition.model, `${where}inconsistent shape: ${shapes}`)
}

function invalid(config: ModelConfig, model: string, message: string): ServeError {
  return new ServeError('ENSEMBLE_INVALID', message, { details: { ensemble: config.name, model } })
}
