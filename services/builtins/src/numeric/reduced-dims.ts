import type { Shape } from '@tutti/tensor'
import { z } from 'zod'

/** Options of built-ins that reduce a dimension to one element. */
export const reduceOptions = {
  keepDims: z
    .boolean()
    .default(false)
    .describe('Whether the output keeps the dimension, with extent 1'),
}

/** The dims that are left; at least one, because no output is without. */
export function keptDims(dims: Shape, axes: readonly number[], keepDims: boolean): Shape {
  if (keepDims) return dims.map((extent, i) => (axes.includes(i) ? 1 : extent))
  const left = dims.filter((_, i) => !axes.includes(i))
  return left.length === 0 ? [1] : left
}
