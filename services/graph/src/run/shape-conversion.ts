import { carryExtents } from '@tutti/model-config'
import { type Shape, shapeMatches } from '@tutti/tensor'

/**
 * Adds or drops the batch dimension of a tensor that goes from a batching model to one without batching, or back.
 *
 * @param shape - shape of the tensor, as its producer gave it.
 * @param wanted.dims - shape that the consumer declares, without a batch dimension.
 * @param wanted.isBatched - true if the consumer batches; then the producer does not, and the other way round.
 * @returns `shape` itself if nothing changes. A shape that does not fit is passed on, and the consumer's own check refuses it.
 * @see triton-semantics 1.6
 */
export function convertBatch(
  shape: Shape,
  wanted: { readonly dims: Shape; readonly isBatched: boolean },
): Shape {
  const fits = shapeMatches(wanted.dims, shape)
  if (wanted.isBatched) return fits ? [1, ...shape] : shape
  return !fits && shape[0] === 1 ? shape.slice(1) : shape
}

/**
 * Converts a shape from one declared shape to another with the same number of elements. Variable extents keep their values.
 *
 * @returns `shape` itself if it does not fit `from`; this function does not check it.
 * @see triton-semantics 2.2, reshape
 */
export function applyReshape(shape: Shape, hasBatch: boolean, from: Shape, to: Shape): Shape {
  const rank = hasBatch ? 1 : 0
  const extents = shape.slice(rank)
  if (!shapeMatches(from, extents)) return shape
  return [...shape.slice(0, rank), ...carryExtents(from, extents, to)]
}
