import { ELEMENT_READERS, type ElementReader } from './element-readers.ts'
import type { Datatype } from './tensor.ts'

/*
 * FP16 and BF16, which JavaScript has no arrays of, as the bits of an element.
 */

/** Functions that read element `index` of raw tensor bytes, for each datatype but BYTES. */
export const NUMBER_READERS: Readonly<Partial<Record<Datatype, ElementReader>>> = {
  ...ELEMENT_READERS,
  FP16: (view, i) => fromHalf(view.getUint16(i * 2, true)),
  BF16: (view, i) => fromBrain(view.getUint16(i * 2, true)),
}

const SCRATCH = new DataView(new ArrayBuffer(4))

export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1
  const [exponent, fraction] = [(bits >> 10) & 0x1f, bits & 0x3ff]
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25))
}

export function fromBrain(bits: number): number {
  SCRATCH.setUint16(0, bits)
  SCRATCH.setUint16(2, 0)
  return SCRATCH.getFloat32(0)
}

/** Converts a number to the bits of FP16. It rounds to the nearest, ties to even; a number that is too large becomes infinite. */
export function toHalf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0
  const size = Math.abs(value)
  if (Number.isNaN(size)) return 0x7e00
  if (size >= 65_520) return sign | 0x7c00
  // The step between two halves at this size; the least for those without an exponent of their own.
  const exponent = size < 2 ** -14 ? -14 : exponentOf(size)
  const steps = roundToEven(size / 2 ** (exponent - 10))
  // Steps that reach 2048 carry into the exponent by themselves.
  return sign | (((exponent + 14) << 10) + steps)
}

/** Converts a number to the bits of BF16, by way of FP32. It rounds to the nearest, ties to even. */
export function toBrain(value: number): number {
  SCRATCH.setFloat32(0, value)
  const bits = SCRATCH.getUint32(0)
  if (Number.isNaN(value)) return 0x7fc0
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16
}

function exponentOf(size: number): number {
  SCRATCH.setFloat32(0, size)
  return (SCRATCH.getUint16(0) >> 7) - 127
}

/** Rounds to the nearest whole number, ties to even, as IEEE 754 does. */
export function roundToEven(value: number): number {
  const floor = Math.floor(value)
  const rest = value - floor
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor
}
