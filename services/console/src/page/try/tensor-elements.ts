import { bytesElements, DATATYPES, NUMBER_READERS, type TensorValue } from '@tutti/tensor'

/** Gives the count of a tensor's elements and a reader for each. For BYTES the count is 0. */
export function numbersOf({ datatype, data }: TensorValue): {
  readonly count: number
  readonly at: (index: number) => number | bigint
} {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength)
  const read = NUMBER_READERS[datatype]
  const count = Math.floor(data.byteLength / (DATATYPES[datatype].itemSize ?? 1))
  return { count: read === undefined ? 0 : count, at: (i) => read?.(view, i) ?? Number.NaN }
}

/** Formats an element for people: integers and FP64 with all digits, other numbers with seven. */
export function formatElement(value: number | bigint, datatype: string): string {
  if (datatype === 'BOOL') return value === 0 ? 'false' : 'true'
  if (typeof value === 'bigint' || Number.isInteger(value)) return String(value)
  return String(datatype === 'FP64' ? value : Number(value.toPrecision(7)))
}

/** Kinds of an element of a BYTES tensor, as people see it. */
export type BytesKind = 'png' | 'jpeg' | 'text' | 'bytes'

const MAGICS = [
  ['png', [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ['jpeg', [0xff, 0xd8, 0xff]],
] as const

export function kindOf(element: Uint8Array): BytesKind {
  const found = MAGICS.find(([, magic]) => magic.every((byte, i) => byte === element[i]))
  if (found !== undefined) return found[0]
  return toText(element) === undefined ? 'bytes' : 'text'
}

/** Decodes UTF-8; undefined if the bytes are none. */
export function toText(element: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(element)
  } catch {
    return undefined
  }
}

/** Reads the first elements of a BYTES tensor, and counts all. If a length is wrong, it stops there and `isCut` is true. */
export function readBytes(
  data: Uint8Array,
  most: number,
): { readonly first: readonly Uint8Array[]; readonly count: number; readonly isCut: boolean } {
  const first: Uint8Array[] = []
  let count = 0
  try {
    for (const element of bytesElements(data)) {
      count += 1
      if (first.length < most) first.push(element)
    }
    return { first, count, isCut: false }
  } catch {
    return { first, count, isCut: true }
  }
}
