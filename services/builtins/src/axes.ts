import type { Shape } from '@tutti/tensor'
import { z } from 'zod'
import { PortFault } from './input-reader.ts'

/** Most dimensions of a tensor that options can speak about. */
export const MAX_RANK = 8

/** Makes the schema of an option that names one dimension, as NumPy counts them. */
export function axisOption(about: string) {
  return z
    .int()
    .min(-MAX_RANK)
    .max(MAX_RANK - 1)
    .describe(`${about}; negative counts from the last dimension`)
}

/** Counts an axis from the first dimension. @throws PortFault if there is no such dimension. */
export function toAxis(path: string, axis: number, rank: number): number {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis
  const want = rank === 0 ? 'a tensor with dimensions' : `${-rank} to ${rank - 1}`
  throw new PortFault({ path, got: `${axis} for ${rank} dimensions`, want })
}

/** Returns the dims with another extent at an axis. */
export function withExtent(dims: Shape, axis: number, extent: number): Shape {
  return dims.map((old, i) => (i === axis ? extent : old))
}
