import { ELEMENT_TYPES } from '@tutti/builtins'
import { ServeError } from '@tutti/errors'
import type { ModelSignature, TensorSpec } from '@tutti/model-config'
import type { Shape } from '@tutti/tensor'
import type { OnnxInterface, OnnxValue } from './inspect.ts'

/** One input or output of a model that can be served; `dims` is null if the file declares no rank. */
export interface OnnxPort extends Omit<TensorSpec, 'dims'> {
  readonly dims: Shape | null
  /** True for an input with a default in the model. */
  readonly optional: boolean
}

/** The inputs and outputs of a model; the optional inputs come last. */
export interface OnnxPorts {
  readonly inputs: readonly OnnxPort[]
  readonly outputs: readonly OnnxPort[]
}

function toPort(value: OnnxValue, kind: 'input' | 'output', optional: boolean): OnnxPort {
  const { name, dims, elementType } = value
  const [type = `element type ${elementType}`, datatype] = ELEMENT_TYPES[elementType] ?? []
  const isTensor = value.kind === 'tensor'
  if (isTensor && datatype !== undefined) return { name, datatype, dims, optional }
  throw new ServeError(
    'MODEL_LOAD_FAILED',
    `model ${kind} '${name}' is of type ${isTensor ? `tensor(${type})` : value.kind}, which cannot be served; want a tensor of BOOL, STRING, BF16, FP16, FP32, FP64 or an integer type of 8 to 64 bits`,
    { code: 'INVALID_ARGUMENT', details: { field: kind } },
  )
}

/**
 * Converts a model's inputs and outputs to those that can be served.
 *
 * @throws ServeError MODEL_LOAD_FAILED that names a tensor whose type cannot be served.
 */
export function toPorts(model: OnnxInterface): OnnxPorts {
  // A default of a type that cannot be sent stays a constant, so it is no reason to refuse the model.
  const servable = model.overridable.filter(
    ({ kind, elementType }) => kind === 'tensor' && ELEMENT_TYPES[elementType]?.[1] !== undefined,
  )
  return {
    inputs: [
      ...model.inputs.map((value) => toPort(value, 'input', false)),
      ...servable.map((value) => toPort(value, 'input', true)),
    ],
    outputs: model.outputs.map((value) => toPort(value, 'output', false)),
  }
}

function toSpec({ name, datatype, dims }: OnnxPort): TensorSpec {
  return { name, datatype, dims: dims ?? [] }
}

/**
 * Makes the signature for auto-completion. Optional inputs are left out, because many exporters list every weight as an input. An
 * unknown rank counts as [].
 */
export function toSignature({ inputs, outputs }: OnnxPorts): ModelSignature {
  return {
    inputs: inputs.filter(({ optional }) => !optional).map(toSpec),
    outputs: outputs.map(toSpec),
  }
}

/** Checks whether the first dimension of every input and output is free (-1). */
export function isBatchable({ inputs, outputs }: ModelSignature): boolean {
  return [...inputs, ...outputs].every(({ dims }) => dims[0] === -1)
}
