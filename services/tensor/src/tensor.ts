/**
 * The datatypes of the v2 protocol. `itemSize` is in bytes; null for BYTES, whose elements are length-prefixed.
 * `config` and `number` are the name and number in model_config.proto (`TYPE_STRING` is BYTES on the wire).
 */
export const DATATYPES = {
  BOOL: { itemSize: 1, config: 'TYPE_BOOL', number: 1 },
  UINT8: { itemSize: 1, config: 'TYPE_UINT8', number: 2 },
  UINT16: { itemSize: 2, config: 'TYPE_UINT16', number: 3 },
  UINT32: { itemSize: 4, config: 'TYPE_UINT32', number: 4 },
  UINT64: { itemSize: 8, config: 'TYPE_UINT64', number: 5 },
  INT8: { itemSize: 1, config: 'TYPE_INT8', number: 6 },
  INT16: { itemSize: 2, config: 'TYPE_INT16', number: 7 },
  INT32: { itemSize: 4, config: 'TYPE_INT32', number: 8 },
  INT64: { itemSize: 8, config: 'TYPE_INT64', number: 9 },
  FP16: { itemSize: 2, config: 'TYPE_FP16', number: 10 },
  FP32: { itemSize: 4, config: 'TYPE_FP32', number: 11 },
  FP64: { itemSize: 8, config: 'TYPE_FP64', number: 12 },
  BYTES: { itemSize: null, config: 'TYPE_STRING', number: 13 },
  BF16: { itemSize: 2, config: 'TYPE_BF16', number: 14 },
} as const satisfies Record<
  string,
  { readonly itemSize: number | null; readonly config: string; readonly number: number }
>

export type Datatype = keyof typeof DATATYPES
/** `TYPE_FP32` and the like, without `TYPE_INVALID`. */
export type ConfigDatatype = (typeof DATATYPES)[Datatype]['config']

export function isDatatype(text: string): text is Datatype {
  return Object.hasOwn(DATATYPES, text)
}

const NAMES = Object.keys(DATATYPES).filter(isDatatype)

/** The datatypes by their names. A text that a client sent may name none. */
export const DATATYPE_BY_NAME: ReadonlyMap<string, Datatype> = new Map(
  NAMES.map((name) => [name, name]),
)

const BY_CONFIG = new Map<string, Datatype>(NAMES.map((name) => [DATATYPES[name].config, name]))

/**
 * Converts a datatype of a configuration, such as `TYPE_STRING` to `BYTES`. Returns undefined for `TYPE_INVALID` and unknown
 * text.
 */
export function fromConfigDatatype(text: string): Datatype | undefined {
  return BY_CONFIG.get(text)
}

/** Extents, outermost first, row-major. -1 stands for "any" in declared shapes and never in a tensor's own. */
export type Shape = readonly number[]

/** Computes the product of the extents; 1 for a scalar. It may exceed 2^53 for hostile shapes, so compare before you allocate. */
export function elementCount(shape: Shape): number {
  let count = 1
  for (const extent of shape) count *= extent
  return count
}

/** True if `shape` fits `declared`, where -1 in either matches any extent. */
export function shapeMatches(declared: Shape, shape: Shape): boolean {
  return (
    declared.length === shape.length &&
    declared.every((want, i) => want === -1 || shape[i] === -1 || want === shape[i])
  )
}

/**
 * A tensor's value: little-endian, row-major, no padding. A BYTES element is a uint32 length and that many bytes. `data` is a
 * view of memory that its maker owns. Nobody writes to that memory once the tensor is handed over.
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

/** Counts the bytes of a response's outputs. */
export function outputBytes(response: {
  readonly outputs: readonly { readonly data: Uint8Array }[]
}): number {
  let bytes = 0
  for (const output of response.outputs) bytes += output.data.byteLength
  return bytes
}
