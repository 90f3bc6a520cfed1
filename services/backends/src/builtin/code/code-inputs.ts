import { bug, ServeError } from '@tutti/errors'
import type { TensorValue } from '@tutti/tensor'

/** Inputs of a request to a built-in, by name. */
export type CodeInputs = ReadonlyMap<string, TensorValue>

/** Returns an input that the signature requires. */
export function inputOf(inputs: CodeInputs, name: string): TensorValue {
  const tensor = inputs.get(name)
  if (tensor === undefined) throw bug(`a built-in has no input ${name}`)
  return tensor
}

/** Numbers of an FP32 tensor, viewed where they are aligned and else copied. */
export function floatsOf({ data }: TensorValue): Float32Array {
  const { buffer, byteOffset, byteLength } = data.byteOffset % 4 === 0 ? data : data.slice()
  return new Float32Array(buffer, byteOffset, byteLength / 4)
}

/** Whole numbers of an INT32 or INT64 tensor. Beyond 2^53 they are rounded. */
export function integersOf({ datatype, data }: TensorValue): Float64Array {
  const { buffer, byteOffset, byteLength } = data.byteOffset % 8 === 0 ? data : data.slice()
  if (datatype === 'INT32')
    return Float64Array.from(new Int32Array(buffer, byteOffset, byteLength / 4))
  const wide = new BigInt64Array(buffer, byteOffset, byteLength / 8)
  return Float64Array.from(wide, Number)
}

/** The error of an input whose values do not fit. */
export function misfit(input: string, got: string, want: string, cause?: unknown): ServeError {
  const text = `input "${input}": ${got}, want ${want}`
  return new ServeError('INVALID_REQUEST', text, cause === undefined ? {} : { cause })
}
