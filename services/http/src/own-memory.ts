/** Bytes of a slab, into which small pieces are put, one behind the other. Node's own pool has 64 KiB, and one of them keeps all of it. */
const SLAB_BYTES = 4096
const SMALL_BYTES = 1024

let slab = Buffer.alloc(0)
let used = 0

/**
 * Allocates memory with undefined content. Small pieces share a slab of 4 KiB, so a piece keeps at most that much more alive.
 * Pages that nothing is written to take no memory.
 */
export function takeMemory(bytes: number): Buffer {
  if (bytes > SMALL_BYTES) return Buffer.allocUnsafeSlow(bytes)
  if (used + bytes > slab.byteLength) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
    used = 0
  }
  used += bytes
  return slab.subarray(used - bytes, used)
}

/** Copies bytes of a read into memory of their own, which may be kept. */
export function ownCopy(bytes: Uint8Array): Buffer {
  const own = takeMemory(bytes.byteLength)
  own.set(bytes)
  return own
}
