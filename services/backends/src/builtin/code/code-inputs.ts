import { bug, ServeError } from '@tutti/errors'
import type { NamedTensor, Shape, TensorValue } from '@tutti/tensor'

/*
 * Tensors of a request have up to hundreds of millions of elements. A list of JavaScript that long ends the process (V8 has no error for it, and
 * `from` of a typed array collects one), so elements stay in typed arrays, and are read in loops.
 */

/** Inputs of a request to a built-in, by name. */
export type CodeInputs = ReadonlyMap<string, TensorValue>

/** Returns an input that the signature requires. */
export function inputOf(inputs: CodeInputs, name: string): TensorValue {
  const tensor = inputs.get(name)
  if (tensor === undefined) throw bug(`a built-in has no input ${name}`)
  return tensor
}

/** Returns data that begins at a multiple of `size`: copied if it does not. A `slice` would be no copy of a Buffer. */
export function alignedTo(size: number, data: Uint8Array): Uint8Array {
  return data.byteOffset % size === 0 ? data : new Uint8Array(data)
}

/** Numbers of an FP32 tensor, viewed where they are aligned and else copied. */
export function floatsOf({ data }: TensorValue): Float32Array {
  const { buffer, byteOffset, byteLength } = alignedTo(4, data)
  return new Float32Array(buffer, byteOffset, byteLength / 4)
}

/** Whole numbers of an INT32 or INT64 tensor. Beyond 2^53 they are rounded. */
export function integersOf({ datatype, data }: TensorValue): Int32Array | Float64Array {
  const { buffer, byteOffset, byteLength } = alignedTo(4, data)
  const words = new Int32Array(buffer, byteOffset, byteLength / 4)
  if (datatype === 'INT32') return words
  const numbers = new Float64Array(words.length / 2)
  for (let i = 0; i < numbers.length; i += 1) {
    numbers[i] = (words[2 * i + 1] ?? 0) * 2 ** 32 + ((words[2 * i] ?? 0) >>> 0)
  }
  return numbers
}

/** One element of an INT32 or INT64 tensor as text, with all of its digits. */
export function integerText({ datatype, data }: TensorValue, at: number): string {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const value = datatype === 'INT32' ? view.getInt32(4 * at, true) : view.getBigInt64(8 * at, true)
  return `${value}`
}

/** Makes an output: of floats FP32, of whole numbers INT64. @param values - of floats viewed, and not copied. */
export function outputOf(
  name: string,
  shape: Shape,
  values: Float32Array<ArrayBuffer> | Int32Array,
): NamedTensor {
  return values instanceof Float32Array
    ? { name, datatype: 'FP32', shape, data: new Uint8Array(values.buffer) }
    : { name, datatype: 'INT64', shape, data: toInt64(values) }
}

/** Bytes of whole numbers as INT64. */
export function toInt64(values: Int32Array): Uint8Array {
  const words = new Int32Array(2 * values.length)
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i] ?? 0
    words[2 * i] = value
    words[2 * i + 1] = value >> 31
  }
  return new Uint8Array(words.buffer)
}

/** Rows of a tensor whose last dimension becomes one element; the shape of these is never without dimensions. */
export function rowsOf({ shape }: TensorValue): {
  readonly shape: Shape
  readonly count: number
  readonly width: number
} {
  const outer = shape.slice(0, -1)
  const count = outer.reduce((product, extent) => product * extent, 1)
  return { shape: outer.length === 0 ? [1] : outer, count, width: shape.at(-1) ?? 0 }
}

/** The error of an input whose values do not fit. */
export function misfit(input: string, got: string, want: string, cause?: unknown): ServeError {
  const text = `input "${input}": ${got}, want ${want}`
  return new ServeError('INVALID_REQUEST', text, cause === undefined ? {} : { cause })
}
