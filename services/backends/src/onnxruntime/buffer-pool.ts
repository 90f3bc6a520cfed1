const SMALLEST_BYTES = 4096
const LARGE_STEP_BYTES = 1024 * 1024

/** Powers of two up to 1 MiB, then whole MiB, so that a buffer fits requests of nearly the same size again. */
function roundSize(size: number): number {
  if (size > LARGE_STEP_BYTES) return Math.ceil(size / LARGE_STEP_BYTES) * LARGE_STEP_BYTES
  return size <= SMALLEST_BYTES ? SMALLEST_BYTES : 1 << (32 - Math.clz32(size - 1))
}

/**
 * Keeps buffers for reuse, since a fresh buffer of 786 KB costs page faults of up to 400 us. When the pool exceeds its bound, it
 * drops all buffers of the size that it has had longest.
 */
export class BufferPool {
  readonly #buffers = new Map<number, ArrayBuffer[]>()
  readonly #maxBytes: number
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Takes a buffer of at least `size` bytes. Its content is undefined. */
  take(size: number): ArrayBuffer {
    const rounded = roundSize(size)
    const buffer = this.#buffers.get(rounded)?.pop()
    if (buffer !== undefined) this.#bytes -= rounded
    return buffer ?? new ArrayBuffer(rounded)
  }

  give(buffer: ArrayBuffer): void {
    const size = buffer.byteLength
    if (size !== roundSize(size) || size > this.#maxBytes) return
    const same = this.#buffers.get(size)
    if (same === undefined) this.#buffers.set(size, [buffer])
    else same.push(buffer)
    this.#bytes += size
    if (this.#bytes <= this.#maxBytes) return
    for (const [first, buffers] of this.#buffers) {
      this.#buffers.delete(first)
      this.#bytes -= first * buffers.length
      if (this.#bytes <= this.#maxBytes) return
    }
  }
}
