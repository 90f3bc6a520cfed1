import type { Datatype } from '@tutti/tensor'
import { ELEMENT_TYPES } from '../onnx/model-ports.ts'
import {
  DIM,
  GRAPH,
  MODEL,
  NODE,
  SHAPE,
  TENSOR_TYPE,
  TYPE,
  VALUE_INFO,
} from '../onnx/model-proto.ts'
import { writeBytes, writeNumber } from './wire-fields.ts'

/** Field numbers of onnx.proto that are written besides those that the engine reads. */
const OPSET_IMPORT = 8
const OPSET_VERSION = 2
const GRAPH_NAME = 2
const TENSOR = { DIMS: 1, DATA_TYPE: 2, STRING_DATA: 6, NAME: 8, RAW_DATA: 9 } as const
const EXTERNAL = { DATA: 13, KEY: 1, VALUE: 2, DATA_LOCATION: 14 } as const
const ATTRIBUTE = { NAME: 1, INT: 3, STRING: 4, INTS: 8, TYPE: 20 } as const
const ATTRIBUTE_TYPE = { INT: 2, STRING: 3, INTS: 7 } as const

/** An input or output. A number as `type` is an ONNX element type, for those that have no datatype here. */
export interface ValueSpec {
  readonly name: string
  readonly type: Datatype | number
  /** Text is a symbolic extent; null declares no rank at all. */
  readonly dims: readonly (number | string)[] | null
  /** Wraps the tensor type; default `tensor`. */
  readonly kind?: 'tensor' | 'sequence' | 'optional'
}

export interface OperatorSpec {
  readonly op: string
  /** Default: the standard's. */
  readonly domain?: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  /** Whole numbers, lists of them, or text. */
  readonly attributes?: Readonly<Record<string, number | string | readonly number[]>>
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
  readonly inputs: readonly ValueSpec[]
  readonly outputs: readonly ValueSpec[]
  readonly operators: readonly OperatorSpec[]
  readonly initializers?: readonly InitializerSpec[]
  /** Default 17. */
  readonly opset?: number
}

function elementType(type: Datatype | number): number {
  if (typeof type === 'number') return type
  const number = ELEMENT_TYPES.findIndex(([, datatype]) => datatype === type)
  if (number === -1) throw new Error(`no ONNX element type for ${type}`)
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

function writeAttribute(name: string, value: number | string | readonly number[]): Uint8Array {
  const parts = [writeBytes(ATTRIBUTE.NAME, name)]
  if (typeof value === 'number') {
    parts.push(writeNumber(ATTRIBUTE.INT, value), writeNumber(ATTRIBUTE.TYPE, ATTRIBUTE_TYPE.INT))
  } else if (typeof value === 'string') {
    parts.push(writeBytes(ATTRIBUTE.STRING, value))
    parts.push(writeNumber(ATTRIBUTE.TYPE, ATTRIBUTE_TYPE.STRING))
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
  const entry = [writeBytes(EXTERNAL.KEY, 'location'), writeBytes(EXTERNAL.VALUE, file)]
  return [writeBytes(EXTERNAL.DATA, Buffer.concat(entry)), writeNumber(EXTERNAL.DATA_LOCATION, 1)]
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
 * Writes a small ONNX model, so that tests need neither files nor Python.
 *
 * @returns the bytes of a ModelProto.
 */
export function buildOnnx(spec: OnnxSpec): Uint8Array<ArrayBuffer> {
  const graph = Buffer.concat([
    ...spec.operators.map((operator) => writeBytes(GRAPH.NODE, writeOperator(operator))),
    writeBytes(GRAPH_NAME, 'test'),
    ...(spec.initializers ?? []).map((tensor) =>
      writeBytes(GRAPH.INITIALIZER, writeInitializer(tensor)),
    ),
    ...spec.inputs.map((value) => writeBytes(GRAPH.INPUT, writeValue(value))),
    ...spec.outputs.map((value) => writeBytes(GRAPH.OUTPUT, writeValue(value))),
  ])
  return Buffer.concat([
    writeNumber(MODEL.IR_VERSION, 8),
    writeBytes(MODEL.GRAPH, graph),
    writeBytes(OPSET_IMPORT, writeNumber(OPSET_VERSION, spec.opset ?? 17)),
  ])
}

/** A model that adds its inputs `a` and `b` to `sum`: FP32 [N, width]. */
export function buildAddModel(width: number): Uint8Array<ArrayBuffer> {
  const dims = ['N', width]
  return buildOnnx({
    inputs: [
      { name: 'a', type: 'FP32', dims },
      { name: 'b', type: 'FP32', dims },
    ],
    outputs: [{ name: 'sum', type: 'FP32', dims }],
    operators: [{ op: 'Add', inputs: ['a', 'b'], outputs: ['sum'] }],
  })
}
