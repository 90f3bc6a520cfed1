import type { Datatype } from '@tutti/tensor'
import type { OrtArray } from './ort-binding.ts'

type ArrayMaker = (buffer: ArrayBuffer, byteOffset: number, byteLength: number) => OrtArray

interface OrtDatatype {
  /** onnxruntime-node's name of the type. */
  readonly name: string
  /** Views bytes as the typed array that the binding wants; null for texts. The offset must be aligned. */
  readonly view: ArrayMaker | null
}

const uint8: ArrayMaker = (buffer, offset, length) => new Uint8Array(buffer, offset, length)
// FP16 too: see ort-binding.ts.
const uint16: ArrayMaker = (buffer, offset, length) => new Uint16Array(buffer, offset, length / 2)

/** How each datatype looks to the binding. BF16 is absent: a session cannot have it as input or output. */
export const ORT_DATATYPES: Readonly<Partial<Record<Datatype, OrtDatatype>>> = {
  BOOL: { name: 'bool', view: uint8 },
  UINT8: { name: 'uint8', view: uint8 },
  UINT16: { name: 'uint16', view: uint16 },
  UINT32: { name: 'uint32', view: (b, offset, length) => new Uint32Array(b, offset, length / 4) },
  UINT64: {
    name: 'uint64',
    view: (b, offset, length) => new BigUint64Array(b, offset, length / 8),
  },
  INT8: { name: 'int8', view: (b, offset, length) => new Int8Array(b, offset, length) },
  INT16: { name: 'int16', view: (b, offset, length) => new Int16Array(b, offset, length / 2) },
  INT32: { name: 'int32', view: (b, offset, length) => new Int32Array(b, offset, length / 4) },
  INT64: { name: 'int64', view: (b, offset, length) => new BigInt64Array(b, offset, length / 8) },
  FP16: { name: 'float16', view: uint16 },
  FP32: { name: 'float32', view: (b, offset, length) => new Float32Array(b, offset, length / 4) },
  FP64: { name: 'float64', view: (b, offset, length) => new Float64Array(b, offset, length / 8) },
  BYTES: { name: 'string', view: null },
}
