import { malformed } from '@tutti/formats'

/** Part of a message that holds varints one after the other, from byte `from` up to, but not including, `to`. */
export interface PackedVarints {
  readonly bytes: Buffer
  readonly from: number
  readonly to: number
}

const CONTINUES = 0x80
const VARINT_BYTES = 10

/** Counts the varints. @throws ServeError MALFORMED_MESSAGE if one is cut short or too long. */
export function countVarints({ bytes, from, to }: PackedVarints): number {
  let count = 0
  let start = from
  for (let at = from; at < to; at += 1) {
    if ((bytes[at] ?? 0) >= CONTINUES) continue
    if (at - start >= VARINT_BYTES) break
    start = at + 1
    count += 1
  }
  if (start < to) throw malformed(`a varint at byte ${start} is cut short or too long`)
  return count
}

/**
 * Writes the low bytes of each varint, little-endian. It is one tight loop because a reader with its state in fields takes ten
 * times as long.
 *
 * @param packed - varints that `countVarints` has accepted.
 * @param itemSize - 1, 2, 4 or 8 bytes.
 * @returns the position in `out` after the last byte written.
 */
export function writeVarints(
  { bytes, from, to }: PackedVarints,
  { itemSize, isBool }: { readonly itemSize: number; readonly isBool: boolean },
  out: DataView,
  at: number,
): number {
  let next = at
  for (let position = from; position < to; ) {
    let byte = bytes[position++] ?? 0
    let low = byte & 0x7f
    let high = 0
    for (let shift = 7; byte >= CONTINUES; shift += 7) {
      byte = bytes[position++] ?? 0
      const bits = byte & 0x7f
      // The fifth byte has bits of both halves.
      if (shift <= 28) low |= bits << shift
      if (shift === 28) high = bits >> 4
      else if (shift > 28) high |= bits << (shift - 32)
    }
    if (isBool) low = (low | high) === 0 ? 0 : 1
    putLow(out, next, low, itemSize)
    if (itemSize > 4) out.setInt32(next + 4, high, true)
    next += itemSize
  }
  return next
}

/** Writes up to four bytes, little-endian. */
function putLow(out: DataView, at: number, value: number, itemSize: number): void {
  if (itemSize === 1) out.setInt8(at, value)
  else if (itemSize === 2) out.setInt16(at, value, true)
  else out.setInt32(at, value, true)
}
