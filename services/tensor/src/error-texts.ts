import type { Shape } from './tensor.ts'

/** The product of the extents with all its digits, for messages that tell clients what was wanted. */
export function formatElementCount(shape: Shape): string {
  return shape.reduce((product, extent) => product * BigInt(extent), 1n).toString()
}

/** Prints as Triton does: `[1,-1,3]`, no blanks. */
export function formatShape(shape: Shape): string {
  return `[${shape.join(',')}]`
}

/** `[request id: X] `, as Triton begins messages about one request; without an id X is `<id_unknown>`. */
export function requestPrefix(id: string): string {
  return `[request id: ${id === '' ? '<id_unknown>' : id}] `
}
