import { type Datatype, inputRefusal, toBrain, toHalf } from '@tutti/tensor'

type Encode = (values: ArrayLike<number>) => ArrayBufferView

/** Little-endian as all machines that browsers run on. */
const ENCODERS: Readonly<Partial<Record<Datatype, Encode>>> = {
  UINT8: (values) => Uint8Array.from(values),
  UINT16: (values) => Uint16Array.from(values),
  UINT32: (values) => Uint32Array.from(values),
  INT16: (values) => Int16Array.from(values),
  INT32: (values) => Int32Array.from(values),
  FP16: (values) => Uint16Array.from(values, toHalf),
  BF16: (values) => Uint16Array.from(values, toBrain),
  FP32: (values) => Float32Array.from(values),
  FP64: (values) => Float64Array.from(values),
}

/**
 * Encodes the elements of a tensor, little-endian.
 *
 * @throws ServeError INVALID_REQUEST for a datatype that the page cannot encode.
 */
export function encodeNumbers(datatype: Datatype, values: ArrayLike<number>): Uint8Array {
  const encode = ENCODERS[datatype]
  if (encode === undefined) {
    throw inputRefusal(`${datatype} is not made of pictures, want a file of its elements`)
  }
  const { buffer, byteOffset, byteLength } = encode(values)
  return new Uint8Array(buffer, byteOffset, byteLength)
}
