/** What a message begins with in gRPC: one byte of flags and its length in four. */
export const FRAME_HEADER_BYTES = 5

/**
 * Follows the messages of a call through the pieces in which they come, without keeping any bytes: a piece may hold several
 * messages, end in the middle of one, or cut a header in two.
 */
export class MessageFrames {
  #headerBytes = 0
  #length = 0
  /** Of the message whose header is read, still to come. */
  #leftBytes = 0
  /** Bytes of each message whose header was read, header included, in their order. */
  readonly #sizes: number[] = []

  /** @returns the largest length that a header in this piece claims; -1 if no header ends in it. */
  add(piece: Buffer): number {
    let largest = -1
    let at = 0
    while (at < piece.byteLength) {
      if (this.#leftBytes > 0) {
        const skipped = Math.min(this.#leftBytes, piece.byteLength - at)
        this.#leftBytes -= skipped
        at += skipped
        continue
      }
      const byte = piece[at++] ?? 0
      if (this.#headerBytes++ > 0) this.#length = this.#length * 256 + byte
      if (this.#headerBytes < FRAME_HEADER_BYTES) continue
      largest = Math.max(largest, this.#length)
      this.#leftBytes = this.#length
      this.#sizes.push(FRAME_HEADER_BYTES + this.#length)
      this.#headerBytes = 0
      this.#length = 0
    }
    return largest
  }

  /** Takes the oldest message off. @returns its bytes as it came, header included; 0 if there is none. */
  next(): number {
    return this.#sizes.shift() ?? 0
  }
}
