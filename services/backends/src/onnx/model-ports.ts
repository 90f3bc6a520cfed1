import { ServeError } from '@tutti/errors'
import type { ModelSignature, TensorSpec } from '@tutti/model-config'
import type { Datatype, Shape } from '@tutti/tensor'
import type { OnnxModel, OnnxValue } from './inspect.ts'

/** One input or output of a model that can be served; `dims` is null if the file declares no rank. */
export interface OnnxPort extends Omit<TensorSpec, 'dims'> {
  readonly dims: Shape | null
}

/** The inputs and outputs of a model. */
export interface OnnxPorts {
  readonly inputs: readonly OnnxPort[]
  readonly outputs: readonly OnnxPort[]
}

/** ONNX TensorProto.DataType by number: its name, and our datatype where the v2 protocol and the binding can carry it. */
export const ELEMENT_TYPES: readonly (readonly [name: string, datatype?: Datatype])[] = [
  ['undefined'],
  ['float', 'FP32'],
  ['uint8', 'UINT8'],
  ['int8', 'INT8'],
  ['uint16', 'UINT16'],
  ['int16', 'INT16'],
  ['int32', 'INT32'],
  ['int64', 'INT64'],
  ['string', 'BYTES'],
  ['bool', 'BOOL'],
  ['float16', 'FP16'],
  ['double', 'FP64'],
  ['uint32', 'UINT32'],
  ['uint64', 'UINT64'],
  ['complex64'],
  ['complex128'],
  // Fine inside a graph; onnxruntime-node refuses a session that has it as an input or output.
  ['bfloat16'],
]

function toPort(value: OnnxValue, kind: 'input' | 'output'): OnnxPort {
  const { name, dims, elementType } = value
  const [type = `element type ${elementType}`, datatype] = ELEMENT_TYPES[elementType] ?? []
  const isTensor = value.kind === 'tensor'
  if (isTensor && datatype !== undefined) return { name, datatype, dims }
  throw new ServeError(
    'MODEL_LOAD_FAILED',
    `model ${kind} '${name}' is of type ${isTensor ? `tensor(${type})` : value.kind}, which cannot be served; want a tensor of BOOL, STRING, FP16, FP32, FP64 or an integer type of 8 to 64 bits`,
    { code: 'INVALID_ARGUMENT', details: { field: kind } },
  )
}

/** @throws ServeError MODEL_LOAD_FAILED naming the tensor whose type cannot be served. */
export function toPorts(model: OnnxModel): OnnxPorts {
  return {
    inputs: model.inputs.map((value) => toPort(value, 'input')),
    outputs: model.outputs.map((value) => toPort(value, 'output')),
  }
}

function toSpec(port: OnnxPort): TensorSpec {
  return { ...port, dims: port.dims ?? [] }
}

/** As a signature; a rank that is not known counts as []. */
export function toSignature({ inputs, outputs }: OnnxPorts): ModelSignature {
  return { inputs: inputs.map(toSpec), outputs: outputs.map(toSpec) }
}

/** True if the first dimension of every input and output is free. */
export function isBatchable({ inputs, outputs }: ModelSignature): boolean {
  return [...inputs, ...outputs].every(({ dims }) => dims[0] === -1)
}
