import type { Datatype } from '@tutti/tensor'

/** ONNX TensorProto.DataType by number: its name, our datatype, and the name that onnxruntime-node uses. */
interface ElementType {
  readonly name: string
  /** Absent for types that the v2 protocol or the binding has no way to carry. */
  readonly datatype?: Datatype
}

const ELEMENT_TYPES: readonly ElementType[] = [
  { name: 'undefined' },
  { name: 'float', datatype: 'FP32' },
  { name: 'uint8', datatype: 'UINT8' },
  { name: 'int8', datatype: 'INT8' },
  { name: 'uint16', datatype: 'UINT16' },
  { name: 'int16', datatype: 'INT16' },
  { name: 'int32', datatype: 'INT32' },
  { name: 'int64', datatype: 'INT64' },
  { name: 'string', datatype: 'BYTES' },
  { name: 'bool', datatype: 'BOOL' },
  { name: 'float16', datatype: 'FP16' },
  { name: 'double', datatype: 'FP64' },
  { name: 'uint32', datatype: 'UINT32' },
  { name: 'uint64', datatype: 'UINT64' },
  { name: 'complex64' },
  { name: 'complex128' },
  // Fine inside a graph; onnxruntime-node refuses a session that has it as an input or output.
  { name: 'bfloat16' },
  { name: 'float8e4m3fn' },
  { name: 'float8e4m3fnuz' },
  { name: 'float8e5m2' },
  { name: 'float8e5m2fnuz' },
  { name: 'uint4' },
  { name: 'int4' },
  { name: 'float4e2m1' },
  { name: 'float8e8m0' },
]

/** `tensor(float)` and the like, for messages. */
export function formatElementType(number: number): string {
  return `tensor(${ELEMENT_TYPES[number]?.name ?? `element type ${number}`})`
}

/** Our datatype for an ONNX element type; undefined if it cannot be served. */
export function fromElementType(number: number): Datatype | undefined {
  return ELEMENT_TYPES[number]?.datatype
}
