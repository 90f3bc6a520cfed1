import { bug } from '@tutti/errors'
import type { Datatype } from '@tutti/tensor'
import { TYPE_NUMBERS } from './element-types.ts'
import { ONNX_FIELDS } from './model-proto.ts'
import { writeBytes, writeFloat, writeNumber } from './wire-fields.ts'

const { ATTRIBUTE, DIM, ENTRY, GRAPH, MODEL, NODE, OPSET, SHAPE } = ONNX_FIELDS
const { TENSOR, TENSOR_TYPE, TYPE, VALUE_INFO } = ONNX_FIELDS
const ATTRIBUTE_TYPE = { FLOAT: 1, INT: 2, STRING: 3, INTS: 7 } as const

/** An input or output. A number as `type` is an ONNX element type, for those that have no datatype here. */
export interface ValueSpec {
  readonly name: string
  readonly type: Datatype | number
  /** Text is a symbolic extent; null declares no rank at all. */
  readonly dims: readonly (number | string)[] | null
  /** Wraps the tensor type; default `tensor`. */
  readonly kind?: 'tensor' | 'sequence' | 'optional'
}

/** Attributes of an operator: whole numbers, lists of them, floats, and texts. */
export type OnnxAttributes = Readonly<
  Record<string, number | string | readonly number[] | { readonly float: number }>
>

export interface OperatorSpec {
  readonly op: string
  /** Default: the standard's. */
  readonly domain?: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly attributes?: OnnxAttributes
}

export interface InitializerSpec {
  readonly name: string
  readonly type: Datatype | number
  readonly dims: readonly number[]
  /** Little-endian; not for BYTES. */
  readonly data?: Uint8Array
  /** Elements of a BYTES tensor. */
  readonly strings?: readonly string[]
  /** A file beside the model that holds the data. */
  readonly file?: string
}

export interface OnnxSpec {
  /** Name of the graph, for messages. */
  readonly name?: string
  readonly inputs: readonly ValueSpec[]
  readonly outputs: readonly ValueSpec[]
  readonly operators: readonly OperatorSpec[]
  readonly initializers?: readonly InitializerSpec[]
  /** Default 17. */
  readonly opset?: number
}

function elementType(type: Datatype | number): number {
  if (typeof type === 'number') return type
  const number = TYPE_NUMBERS.get(type)
  if (number === undefined) throw bug(`no ONNX element type for ${type}`)
  return number
}

function writeShape(dims: readonly (number | string)[]): Uint8Array {
  const parts = dims.map((dim) =>
    writeBytes(
      SHAPE.DIM,
      typeof dim === 'number' ? writeNumber(DIM.VALUE, dim) : writeBytes(DIM.PARAM, dim),
    ),
  )
  return Buffer.concat(parts)
}

function writeType(value: ValueSpec): Uint8Array {
  const parts = [writeNumber(TENSOR_TYPE.ELEMENT_TYPE, elementType(value.type))]
  if (value.dims !== null) parts.push(writeBytes(TENSOR_TYPE.SHAPE, writeShape(value.dims)))
  const tensor = writeBytes(TYPE.TENSOR, Buffer.concat(parts))
  if (value.kind === 'sequence') return writeBytes(TYPE.SEQUENCE, writeBytes(1, tensor))
  if (value.kind === 'optional') return writeBytes(TYPE.OPTIONAL, writeBytes(1, tensor))
  return tensor
}

function writeValue(value: ValueSpec): Uint8Array {
  return Buffer.concat([
    writeBytes(VALUE_INFO.NAME, value.name),
    writeBytes(VALUE_INFO.TYPE, writeType(value)),
  ])
}

function writeAttribute(name: string, value: OnnxAttributes[string]): Uint8Array {
  const parts = [writeBytes(ATTRIBUTE.NAME, name)]
  if (typeof value === 'number') {
    parts.push(writeNumber(ATTRIBUTE.INT, value), writeNumber(ATTRIBUTE.TYPE, ATTRIBUTE_TYPE.INT))
  } else if (typeof value === 'string') {
    parts.push(writeBytes(ATTRIBUTE.STRING, value))
    parts.push(writeNumber(ATTRIBUTE.TYPE, ATTRIBUTE_TYPE.STRING))
  } else if ('float' in value) {
    parts.push(writeFloat(ATTRIBUTE.FLOAT, value.float))
    parts.push(writeNumber(ATTRIBUTE.TYPE, ATTRIBUTE_TYPE.FLOAT))
  } else {
    parts.push(...value.map((number) => writeNumber(ATTRIBUTE.INTS, number)))
    parts.push(writeNumber(ATTRIBUTE.TYPE, ATTRIBUTE_TYPE.INTS))
  }
  return Buffer.concat(parts)
}

function writeOperator(operator: OperatorSpec): Uint8Array {
  return Buffer.concat([
    ...operator.inputs.map((name) => writeBytes(NODE.INPUT, name)),
    ...operator.outputs.map((name) => writeBytes(NODE.OUTPUT, name)),
    writeBytes(NODE.OP_TYPE, operator.op),
    ...(operator.domain === undefined ? [] : [writeBytes(NODE.DOMAIN, operator.domain)]),
    ...Object.entries(operator.attributes ?? {}).map(([name, value]) =>
      writeBytes(NODE.ATTRIBUTE, writeAttribute(name, value)),
    ),
  ])
}

function writeLocation(file: string): Uint8Array[] {
  const entry = [writeBytes(ENTRY.KEY, 'location'), writeBytes(ENTRY.VALUE, file)]
  return [
    writeBytes(TENSOR.EXTERNAL_DATA, Buffer.concat(entry)),
    writeNumber(TENSOR.DATA_LOCATION, 1),
  ]
}

function writeInitializer(tensor: InitializerSpec): Uint8Array {
  const strings = tensor.strings ?? []
  return Buffer.concat([
    ...tensor.dims.map((dim) => writeNumber(TENSOR.DIMS, dim)),
    writeNumber(TENSOR.DATA_TYPE, elementType(tensor.type)),
    ...strings.map((text) => writeBytes(TENSOR.STRING_DATA, text)),
    writeBytes(TENSOR.NAME, tensor.name),
    ...(tensor.data === undefined ? [] : [writeBytes(TENSOR.RAW_DATA, tensor.data)]),
    ...(tensor.file === undefined ? [] : writeLocation(tensor.file)),
  ])
}

/**
 * Writes an ONNX model.
 *
 * @returns the bytes of a ModelProto.
 */
export function buildOnnx(spec: OnnxSpec): Uint8Array<ArrayBuffer> {
  const graph = Buffer.concat([
    ...spec.operators.map((operator) => writeBytes(GRAPH.NODE, writeOperator(operator))),
    writeBytes(GRAPH.NAME, spec.name ?? 'graph'),
    ...(spec.initializers ?? []).map((tensor) =>
      writeBytes(GRAPH.INITIALIZER, writeInitializer(tensor)),
    ),
    ...spec.inputs.map((value) => writeBytes(GRAPH.INPUT, writeValue(value))),
    ...spec.outputs.map((value) => writeBytes(GRAPH.OUTPUT, writeValue(value))),
  ])
  return Buffer.concat([
    writeNumber(MODEL.IR_VERSION, 8),
    writeBytes(MODEL.GRAPH, graph),
    writeBytes(MODEL.OPSET_IMPORT, writeNumber(OPSET.VERSION, spec.opset ?? 17)),
  ])
}
