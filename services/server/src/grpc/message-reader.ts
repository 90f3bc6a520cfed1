import { ServeError } from '@tutti/errors'

/** What a message begins with in gRPC: one byte of flags and its length in four. */
export const FRAME_HEADER_BYTES = 5

/**
 * A client has to have sent this part of a message before memory for all of it is set aside, so that lengths that are only
 * claimed take little.
 */
const PART_BEFORE_ALLOCATION = 1 / 8

/**
 * Splits into frames the bytes of a call that do not come as one whole frame a piece: a piece may hold several, end in the
 * middle of one, or cut a header in two. A frame that comes within one piece is a view into it; any other is copied once.
 */
export class MessageReader {
  readonly #maxBytes: number
  /** What came last, as far as it is not split yet. */
  #rest: Buffer | undefined
  /** Of a frame that comes in several pieces, until memory for it is set aside. */
  #pieces: Buffer[] | undefined
  #frame: Buffer | undefined
  /** Bytes of that frame so far. */
  #begunBytes = 0

  /** @param maxBytes - of one message, as its header claims. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes that have come and stand in no frame that was given out. */
  get pendingBytes(): number {
    return this.#begunBytes + (this.#rest?.byteLength ?? 0)
  }

  add(piece: Buffer): void {
    this.#rest = this.#rest === undefined ? piece : Buffer.concat([this.#rest, piece])
  }

  /**
   * The next whole frame with its header; undefined until more has come.
   * @throws ServeError MESSAGE_TOO_LARGE as soon as a header claims too much.
   */
  next(): Buffer | undefined {
    const rest = this.#rest
    if (rest === undefined) return undefined
    if (this.#begunBytes === 0 && rest.byteLength >= FRAME_HEADER_BYTES) {
      const sizeBytes = this.#frameBytes(rest)
      if (rest.byteLength >= sizeBytes) {
        this.#rest = rest.byteLength > sizeBytes ? rest.subarray(sizeBytes) : undefined
        return rest.subarray(0, sizeBytes)
      }
    }
    this.#rest = undefined
    if (rest.byteLength > 0) this.#append(rest)
    return this.#take()
  }

  #append(piece: Buffer): void {
    if (this.#frame !== undefined) return this.#fill(this.#frame, piece)
    this.#pieces ??= []
    this.#pieces.push(piece)
    this.#begunBytes += piece.byteLength
    if (this.#begunBytes < FRAME_HEADER_BYTES) return
    const [first = piece] = this.#pieces
    const head = first.byteLength < FRAME_HEADER_BYTES ? Buffer.concat(this.#pieces) : first
    const sizeBytes = this.#frameBytes(head)
    if (this.#begunBytes < sizeBytes * PART_BEFORE_ALLOCATION) return
    const pieces = this.#pieces
    this.#pieces = undefined
    this.#begunBytes = 0
    this.#frame = Buffer.allocUnsafe(sizeBytes)
    for (const one of pieces) this.#fill(this.#frame, one)
  }

  /** Only the last piece reaches beyond its frame. */
  #fill(frame: Buffer, piece: Buffer): void {
    const copied = piece.copy(frame, this.#begunBytes)
    this.#begunBytes += copied
    if (copied < piece.byteLength) this.#rest = piece.subarray(copied)
  }

  #take(): Buffer | undefined {
    const frame = this.#frame
    if (frame === undefined || this.#begunBytes < frame.byteLength) return undefined
    this.#frame = undefined
    this.#begunBytes = 0
    return frame
  }

  #frameBytes(head: Buffer): number {
    const length = head.readUInt32BE(1)
    if (length <= this.#maxBytes) return FRAME_HEADER_BYTES + length
    throw new ServeError(
      'MESSAGE_TOO_LARGE',
      `message has ${length} bytes, want at most ${this.#maxBytes}`,
    )
  }
}
