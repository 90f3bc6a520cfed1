import type { Datatype } from './datatype.ts'
import type { Shape } from './shape.ts'

/**
 * A tensor's value: little-endian, row-major, no padding; BYTES elements are a uint32 length and that many bytes.
 * `data` is a view; who made it owns the memory, and nobody writes to it once it is handed over.
 */
export interface TensorValue {
  readonly datatype: Datatype
  readonly shape: Shape
  readonly data: Uint8Array
}

export interface NamedTensor extends TensorValue {
  readonly name: string
}

/** A request or response parameter with its wire kind, which must survive every hop. */
export type Parameter =
  | { readonly kind: 'bool'; readonly value: boolean }
  | { readonly kind: 'int64'; readonly value: bigint }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'double'; readonly value: number }
  | { readonly kind: 'uint64'; readonly value: bigint }

export type Parameters = ReadonlyMap<string, Parameter>
