/** How many pieces come before the small ones among them are put together. */
const MOST_LOOSE = 1024
/** Pieces that are larger together are few for their bytes. */
const SMALL_BYTES = 2 ** 20

/**
 * Puts pieces of one message or body together where they are many and small: each takes some hundred bytes beside its own, which
 * nothing counts, and a client may send one byte a piece.
 */
export class LoosePieces {
  #loose = 0

  /** @param pieces - to whose end one was added; small ones at the end may become one. */
  added(pieces: Uint8Array[]): void {
    this.#loose += 1
    if (this.#loose < MOST_LOOSE) return
    this.#loose = 0
    const tail = pieces.slice(-MOST_LOOSE)
    const bytes = tail.reduce((sum, { byteLength }) => sum + byteLength, 0)
    if (bytes >= SMALL_BYTES) return
    pieces.length -= tail.length
    pieces.push(Buffer.concat(tail, bytes))
  }
}
