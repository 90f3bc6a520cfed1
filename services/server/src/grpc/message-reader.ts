import { ServeError } from '@tutti/errors'
import { LoosePieces } from '../request/loose-pieces.ts'
import { ownBytes } from '../request/own-bytes.ts'

/** What a message begins with in gRPC: one byte of flags and its length in four. */
export const FRAME_HEADER_BYTES = 5

/** Takes the messages of one call. What a method throws fails the call. */
export interface MessageReceiver {
  /** Takes the next message, which stays charged until it is released. */
  receive(message: Buffer): void
  /** The client has sent all. @param surplusBytes - that came after the last whole message. */
  end(surplusBytes: number): void
}

/** The error for a call whose bytes are not the one message that is wanted. */
export function notOneMessage(got: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', `call has ${got}`)
}

/**
 * Splits into frames the bytes of a call that do not come as one whole frame a piece: a piece may hold several, end in the
 * middle of one, or cut a header in two. A frame that comes within one piece is a view into it; any other is copied once.
 */
export class MessageReader {
  readonly #maxBytes: number
  readonly #pieces: Buffer[] = []
  readonly #loose = new LoosePieces()
  #pendingBytes = 0
  /** Of the frame that is coming, once its header is there; else 0. */
  #sizeBytes = 0

  /** @param maxBytes - of one message, as its header claims. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes that have come and stand in no frame that was given out. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  add(piece: Buffer): void {
    if (piece.byteLength === 0) return
    this.#pieces.push(ownBytes(piece))
    this.#pendingBytes += piece.byteLength
    this.#loose.added(this.#pieces, this.#pendingBytes, this.#sizeBytes)
  }

  /**
   * The next whole frame with its header; undefined until more has come.
   * @throws ServeError MESSAGE_TOO_LARGE as soon as a header claims too much.
   */
  next(): Buffer | undefined {
    if (this.#pendingBytes < FRAME_HEADER_BYTES) return undefined
    const length = this.#join(FRAME_HEADER_BYTES).readUInt32BE(1)
    if (length > this.#maxBytes) {
      const text = `message has ${length} bytes, want at most ${this.#maxBytes}`
      throw new ServeError('MESSAGE_TOO_LARGE', text)
    }
    const sizeBytes = FRAME_HEADER_BYTES + length
    this.#sizeBytes = this.#pendingBytes < sizeBytes ? sizeBytes : 0
    if (this.#sizeBytes > 0) return undefined
    const first = this.#join(sizeBytes)
    if (first.byteLength === sizeBytes) this.#pieces.shift()
    else this.#pieces[0] = first.subarray(sizeBytes)
    this.#pendingBytes -= sizeBytes
    return first.subarray(0, sizeBytes)
  }

  /** The first piece, made longer with those after it until it has so many bytes, which are there. */
  #join(sizeBytes: number): Buffer {
    const [head] = this.#pieces
    // Of many small pieces the list is changed once for a message, not for each.
    if (head !== undefined && head.byteLength >= sizeBytes) return head
    let count = 0
    let bytes = 0
    while (bytes < sizeBytes) bytes += this.#pieces[count++]?.byteLength ?? 0
    const joined = this.#pieces.splice(0, count)
    const [first] = joined
    const whole = joined.length === 1 && first !== undefined ? first : Buffer.concat(joined)
    this.#pieces.unshift(whole)
    return whole
  }
}
