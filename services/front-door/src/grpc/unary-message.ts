import { ServeError } from '@tutti/errors'
import { FRAME_HEADER_BYTES } from './message-frames.ts'

/**
 * A client has to have sent this part of a message before memory for all of it is set aside, so that lengths that are only
 * claimed take little.
 */
const PART_BEFORE_ALLOCATION = 1 / 8

/** Puts the one uncompressed message of a unary call together from the pieces in which it comes. */
export class UnaryMessage {
  #pieces: Buffer[] = []
  #receivedBytes = 0
  /** With its frame header. */
  #whole: Buffer | undefined

  /** @param piece - kept until the message is whole; a message that comes in one piece is not copied. */
  add(piece: Buffer): void {
    if (this.#whole === undefined) {
      this.#pieces.push(piece)
      this.#receivedBytes += piece.byteLength
      this.#collect()
    } else {
      // What is surplus is counted and not kept.
      piece.copy(this.#whole, this.#receivedBytes)
      this.#receivedBytes += piece.byteLength
    }
  }

  /** The message. @throws ServeError MALFORMED_MESSAGE if what came is not exactly one. */
  end(): Buffer {
    const whole = this.#whole ?? this.#join(this.#receivedBytes)
    if (whole.byteLength < FRAME_HEADER_BYTES) {
      throw malformed(`call has ${whole.byteLength} bytes, want one message`)
    }
    if (whole[0] !== 0) throw malformed('message is compressed, but grpc-encoding names no way')
    const frameBytes = frameBytesOf(whole)
    if (this.#receivedBytes !== frameBytes) {
      throw malformed(`call has ${this.#receivedBytes} bytes, want one message of ${frameBytes}`)
    }
    return whole.subarray(FRAME_HEADER_BYTES)
  }

  #collect(): void {
    const [first] = this.#pieces
    if (first === undefined || this.#receivedBytes < FRAME_HEADER_BYTES) return
    const head = first.byteLength < FRAME_HEADER_BYTES ? this.#join(this.#receivedBytes) : first
    const frameBytes = frameBytesOf(head)
    if (this.#pieces.length === 1 && this.#receivedBytes >= frameBytes) this.#whole = first
    else if (this.#receivedBytes >= frameBytes * PART_BEFORE_ALLOCATION) {
      this.#whole = this.#join(frameBytes)
    } else return
    this.#pieces = []
  }

  #join(sizeBytes: number): Buffer {
    const joined = Buffer.allocUnsafe(sizeBytes)
    let at = 0
    for (const piece of this.#pieces) at += piece.copy(joined, at)
    return joined
  }
}

function frameBytesOf(head: Buffer): number {
  return FRAME_HEADER_BYTES + head.readUInt32BE(1)
}

function malformed(message: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', message)
}
