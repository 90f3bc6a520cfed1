import type { Shape } from './tensor.ts'

/** Formats the product of the extents with all its digits, for messages that tell clients what was wanted. */
export function formatElementCount(shape: Shape): string {
  return shape.reduce((product, extent) => product * BigInt(extent), 1n).toString()
}

/** Prints as Triton does: `[1,-1,3]`, no blanks. */
export function formatShape(shape: Shape): string {
  return `[${shape.join(',')}]`
}

/** Makes the prefix `[request id: X] ` of Triton's messages about one request. Without an id, X is `<id_unknown>`. */
export function requestPrefix(id: string): string {
  return `[request id: ${id === '' ? '<id_unknown>' : id}] `
}
