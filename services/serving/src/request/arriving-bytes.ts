import { takeMemory } from '@tutti/http'

/** A message up to this size gets its memory when a small part of it is there. */
const LARGE_BYTES = 2 ** 20
const BEGUN_PART = 1 / 64
/** So much of a larger one must be there before it gets all its memory: who only announces one gets none. Of 256 MiB some 32 are copied at once. */
const LARGE_BEGUN_PART = 1 / 16

/**
 * A message or body that is put together as its pieces come, in memory of its own. Each byte is copied once, those of the first
 * part of a large one twice: so nothing keeps the reads that it came with, and its end is no more work than another piece.
 */
export class ArrivingBytes {
  readonly #sizeBytes: number
  #bytes: Buffer = Buffer.alloc(0)
  #filled = 0

  /** @param sizeBytes - as it was announced; none is announced if absent. */
  constructor(sizeBytes = Number.POSITIVE_INFINITY) {
    this.#sizeBytes = sizeBytes
  }

  /** All that was announced is there. */
  get isWhole(): boolean {
    return this.#filled === this.#sizeBytes
  }

  /** Bytes that are there; not changed by what comes later. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#filled)
  }

  /** Copies a piece from `at` on, as far as it belongs to this. @returns where the rest of the piece begins. */
  add(piece: Uint8Array, at = 0): number {
    const end = Math.min(piece.byteLength, at + this.#sizeBytes - this.#filled)
    const filled = this.#filled + end - at
    if (filled > this.#bytes.byteLength) this.#grow(filled)
    this.#bytes.set(
      at === 0 && end === piece.byteLength ? piece : piece.subarray(at, end),
      this.#filled,
    )
    this.#filled = filled
    return end
  }

  #grow(wanted: number): void {
    const begun = Math.max(Math.min(wanted / BEGUN_PART, LARGE_BYTES), wanted / LARGE_BEGUN_PART)
    const isSmall = wanted <= LARGE_BYTES && !Number.isFinite(this.#sizeBytes)
    const sizeBytes = isSmall ? 2 * wanted : Math.min(this.#sizeBytes, begun)
    const larger = takeMemory(sizeBytes)
    larger.set(this.bytes)
    this.#bytes = larger
  }
}
