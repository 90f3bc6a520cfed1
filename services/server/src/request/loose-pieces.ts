/** How many pieces come before the small ones among them are put together. */
const MOST_LOOSE = 1024
/** Pieces that are larger together are few for their bytes. */
const SMALL_BYTES = 2 ** 20

/** So much of a large message has come, as a part of it, before all its memory is taken: who only announces one gets none. */
const BEGUN_PART = 1 / 8

/**
 * Puts pieces of one message or body together. Many small ones, because each takes some hundred bytes beside its own, which nothing
 * counts, and a client may send one byte a piece. And those of a large message as they come: at its end that would hold the event
 * loop for a millisecond a mebibyte.
 */
export class LoosePieces {
  #loose = 0
  /** The memory of a large message, and how much of it has come; that is the first piece then. */
  #large: { readonly whole: Buffer; filled: number } | undefined

  /**
   * @param pieces - to whose end one was added; small ones at the end may become one, and those of a large message the first.
   * @param gotBytes - of all pieces.
   * @param sizeBytes - of the message that the first piece begins; 0 if it is not known.
   */
  added(pieces: Uint8Array[], gotBytes: number, sizeBytes: number): void {
    const isLarge = sizeBytes > SMALL_BYTES && gotBytes >= sizeBytes * BEGUN_PART
    if (isLarge && this.#joinLarge(pieces, sizeBytes)) return
    this.#loose += 1
    if (this.#loose < MOST_LOOSE) return
    this.#loose = 0
    const tail = pieces.slice(-MOST_LOOSE)
    const bytes = tail.reduce((sum, { byteLength }) => sum + byteLength, 0)
    if (bytes >= SMALL_BYTES) return
    pieces.length -= tail.length
    pieces.push(Buffer.concat(tail, bytes))
  }

  #joinLarge(pieces: Uint8Array[], sizeBytes: number): boolean {
    if ((pieces[0]?.byteLength ?? 0) >= sizeBytes) return false
    const large = (this.#large ??= { whole: Buffer.allocUnsafeSlow(sizeBytes), filled: 0 })
    const added = large.filled > 0 ? pieces.slice(1) : [...pieces]
    const rest: Uint8Array[] = []
    for (const piece of added) {
      const own = piece.subarray(0, sizeBytes - large.filled)
      large.whole.set(own, large.filled)
      large.filled += own.byteLength
      if (own.byteLength < piece.byteLength) rest.push(piece.subarray(own.byteLength))
    }
    pieces.splice(0, pieces.length, large.whole.subarray(0, large.filled), ...rest)
    if (large.filled === sizeBytes) this.#large = undefined
    return true
  }
}
