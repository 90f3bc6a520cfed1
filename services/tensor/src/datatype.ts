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

const BY_CONFIG = new Map<string, Datatype>(
  Object.keys(DATATYPES)
    .filter(isDatatype)
    .map((name) => [DATATYPES[name].config, name]),
)

/** `TYPE_STRING` -> `BYTES`. Returns undefined for `TYPE_INVALID` and unknown text. */
export function fromConfigDatatype(text: string): Datatype | undefined {
  return BY_CONFIG.get(text)
}
