/** What small pieces are copied into, one behind the other. Node's own pool has 64 KiB, and one piece keeps all of it. */
const SLAB_BYTES = 4096
/** A piece that is smaller than this part of what it would keep is copied. */
const SMALL_PART = 1 / 4

let slab = Buffer.alloc(0)
let used = 0

/**
 * What may be kept of a piece of a read from a socket: the piece, or a copy of a small one, which is a view of the whole read and would
 * keep much more than was counted.
 */
export function ownBytes(piece: Buffer): Buffer {
  const { byteLength } = piece
  const kept = piece.buffer.byteLength
  if (kept <= SLAB_BYTES || byteLength >= SMALL_PART * kept) return piece
  const copy =
    byteLength > SMALL_PART * SLAB_BYTES ? Buffer.allocUnsafeSlow(byteLength) : take(byteLength)
  copy.set(piece)
  return copy
}

function take(bytes: number): Buffer {
  if (used + bytes > slab.byteLength) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
    used = 0
  }
  used += bytes
  return slab.subarray(used - bytes, used)
}
