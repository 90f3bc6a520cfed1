import type { Datatype } from '@tutti/tensor'

/**
 * How each datatype looks to the binding: onnxruntime-node's name of the type, and the typed array that it takes; null for
 * texts. FP16 is Uint16Array: see ort-binding.ts. BF16 is absent: a session cannot have it as input or output.
 */
export const ORT_DATATYPES = {
  BOOL: { name: 'bool', View: Uint8Array },
  UINT8: { name: 'uint8', View: Uint8Array },
  UINT16: { name: 'uint16', View: Uint16Array },
  UINT32: { name: 'uint32', View: Uint32Array },
  UINT64: { name: 'uint64', View: BigUint64Array },
  INT8: { name: 'int8', View: Int8Array },
  INT16: { name: 'int16', View: Int16Array },
  INT32: { name: 'int32', View: Int32Array },
  INT64: { name: 'int64', View: BigInt64Array },
  FP16: { name: 'float16', View: Uint16Array },
  FP32: { name: 'float32', View: Float32Array },
  FP64: { name: 'float64', View: Float64Array },
  BYTES: { name: 'string', View: null },
  BF16: undefined,
} as const satisfies Record<Datatype, { readonly name: string; readonly View: unknown } | undefined>
