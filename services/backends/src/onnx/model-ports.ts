import { ServeError } from '@tutti/errors'
import type { ModelSignature, TensorSpec } from '@tutti/model-config'
import type { Shape } from '@tutti/tensor'
import { formatElementType, fromElementType } from './element-type.ts'
import type { OnnxModel, OnnxValue } from './inspect.ts'

/** One input or output of a model that can be served; `dims` is null if the file declares no rank. */
export interface OnnxPort extends Omit<TensorSpec, 'dims'> {
  readonly dims: Shape | null
}

/** The inputs and outputs of a model. Inputs with a default in the model are `optional` and come last. */
export interface OnnxPorts {
  readonly inputs: readonly OnnxPort[]
  readonly outputs: readonly OnnxPort[]
}

function toPort(value: OnnxValue, kind: 'input' | 'output', optional: boolean): OnnxPort {
  const { name, dims, elementType } = value
  const datatype = value.kind === 'tensor' ? fromElementType(elementType) : undefined
  if (datatype !== undefined) return { name, datatype, dims, optional }
  const type = value.kind === 'tensor' ? formatElementType(elementType) : value.kind
  throw new ServeError(
    'MODEL_LOAD_FAILED',
    `model ${kind} '${name}' is of type ${type}, which cannot be served; want a tensor of BOOL, STRING, FP16, FP32, FP64 or an integer type of 8 to 64 bits`,
    { code: 'INVALID_ARGUMENT', details: { field: kind } },
  )
}

/** @throws ServeError MODEL_LOAD_FAILED naming the tensor whose type cannot be served. */
export function toPorts(model: OnnxModel): OnnxPorts {
  // A default of a type that nobody can send stays a constant, so it is no reason to refuse the model.
  const servable = model.overridable.filter(
    (value) => value.kind === 'tensor' && fromElementType(value.elementType) !== undefined,
  )
  return {
    inputs: [
      ...model.inputs.map((value) => toPort(value, 'input', false)),
      ...servable.map((value) => toPort(value, 'input', true)),
    ],
    outputs: model.outputs.map((value) => toPort(value, 'output', false)),
  }
}

function toSpec(port: OnnxPort): TensorSpec {
  return { ...port, dims: port.dims ?? [] }
}

/**
 * The signature for auto-completion: without the inputs that have a default in the model, because many exporters list every
 * weight as one. A rank that is not known counts as [].
 */
export function toSignature(ports: OnnxPorts): ModelSignature {
  return {
    inputs: ports.inputs.filter(({ optional }) => !optional).map(toSpec),
    outputs: ports.outputs.map(toSpec),
  }
}

/** True if the first dimension of every input and output is free. */
export function isBatchable(signature: ModelSignature): boolean {
  return [...signature.inputs, ...signature.outputs].every(({ dims }) => dims[0] === -1)
}
