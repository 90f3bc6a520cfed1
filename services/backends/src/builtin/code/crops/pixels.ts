import { type Datatype, fromHalf, roundToEven, type TensorValue, toHalf } from '@tutti/tensor'
import { alignedTo, floatsOf } from '../code-inputs.ts'

/** Pixels of a tensor, viewed where they are aligned and else copied; those of FP16 become FP32. */
export function pixelsOf(tensor: TensorValue): Uint8Array | Uint16Array | Float32Array {
  const { datatype, data } = tensor
  if (datatype === 'UINT8') return data
  if (datatype === 'FP32') return floatsOf(tensor)
  const { buffer, byteOffset, byteLength } = alignedTo(2, data)
  const pairs = new Uint16Array(buffer, byteOffset, byteLength / 2)
  if (datatype !== 'FP16') return pairs
  const pixels = new Float32Array(pairs.length)
  for (let i = 0; i < pairs.length; i += 1) pixels[i] = fromHalf(pairs[i] ?? 0)
  return pixels
}

/** Memory for pixels of a datatype. Those of an integer are rounded, ties to even, and limited to its range. */
export interface PixelWriter {
  readonly data: Uint8Array<ArrayBuffer>
  /** Writes numbers from a place on. */
  write(values: Float32Array, at: number): void
}

/** Makes memory for a number of values. @param datatype - UINT8, UINT16, FP16 or FP32. */
export function pixelWriter(datatype: Datatype, count: number): PixelWriter {
  if (datatype === 'UINT8') {
    const pixels = new Uint8ClampedArray(count)
    return {
      data: new Uint8Array(pixels.buffer),
      // Which rounds and limits them so.
      write: (values, at) => pixels.set(values, at),
    }
  }
  if (datatype === 'FP32') {
    const pixels = new Float32Array(count)
    return {
      data: new Uint8Array(pixels.buffer),
      write: (values, at) => pixels.set(values, at),
    }
  }
  const pixels = new Uint16Array(count)
  const convert = datatype === 'FP16' ? toHalf : toUint16
  return {
    data: new Uint8Array(pixels.buffer),
    write: (values, at) => {
      for (let i = 0; i < values.length; i += 1) pixels[at + i] = convert(values[i] ?? 0)
    },
  }
}

function toUint16(value: number): number {
  return Math.min(Math.max(roundToEven(value), 0), 65_535)
}
