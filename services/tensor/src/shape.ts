/** Extents, outermost first, row-major. -1 stands for "any" in declared shapes and never in a tensor's own. */
export type Shape = readonly number[]

/** The product of the extents; 1 for a scalar. May exceed 2^53 for hostile shapes, so compare before you allocate. */
export function elementCount(shape: Shape): number {
  let count = 1
  for (const extent of shape) count *= extent
  return count
}

/** The product of the extents with all its digits, for messages that tell clients what was wanted. */
export function formatElementCount(shape: Shape): string {
  return shape.reduce((product, extent) => product * BigInt(extent), 1n).toString()
}

/** Prints as Triton does: `[1,-1,3]`, no blanks. */
export function formatShape(shape: Shape): string {
  return `[${shape.join(',')}]`
}

/** True if `shape` fits `declared`, where -1 in either matches any extent. */
export function shapeMatches(declared: Shape, shape: Shape): boolean {
  return (
    declared.length === shape.length &&
    declared.every((want, i) => want === -1 || shape[i] === -1 || want === shape[i])
  )
}
