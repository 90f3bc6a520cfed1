import type { Datatype } from '@tutti/tensor'

/** ONNX TensorProto.DataType by number: its name, and our datatype where the v2 protocol can carry it. */
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
  ['bfloat16', 'BF16'],
]

/** Numbers of the datatypes, in ONNX and in the runtime's C API. */
export const TYPE_NUMBERS: ReadonlyMap<Datatype | undefined, number> = new Map(
  ELEMENT_TYPES.map(([, datatype], number) => [datatype, number]),
)
