import { ServeError } from '@tutti/errors'
import { ArrivingBytes } from '@tutti/serving'
import type { TensorMemory } from '@tutti/tensor'
import type { ApartTensors } from './apart-tensors.ts'
import { ArrivingMessage } from './arriving-message.ts'

/** Bytes that a message begins with in gRPC: one of flags and its length in four. */
export const FRAME_HEADER_BYTES = 5
const EMPTY = Buffer.alloc(0)

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

/** A message with the flags that stand before it. */
export interface FramedMessage {
  readonly flags: number
  readonly message: Buffer
  /** Its large tensors, which `message` does not have; undefined if there are none. */
  readonly apart: ApartTensors | undefined
}

/**
 * Puts the messages of a call together from pieces that are no whole message each: a piece may hold several, end in the middle of
 * one, or cut a header in two. Each message is copied once into memory of its own, as it comes, and its
 * large tensors each into a part of `memory`.
 */
export class MessageReader {
  readonly #maxBytes: number
  readonly #memory: TensorMemory | undefined
  readonly #header = Buffer.alloc(FRAME_HEADER_BYTES)
  #headerBytes = 0
  /** The message that is coming, once its header is there. */
  #coming: ArrivingMessage | undefined
  /** The bytes that have come, read up to `#at`: the last piece, or a copy of it and of all that came since. */
  #source: Buffer = EMPTY
  #at = 0
  #kept: ArrivingBytes | undefined
  #pendingBytes = 0

  /**
   * @param maxBytes - of one message, as its header claims.
   * @param memory - of the large tensors of messages that are inference requests.
   */
  constructor(maxBytes: number, memory?: TensorMemory) {
    this.#maxBytes = maxBytes
    this.#memory = memory
  }

  /** Bytes that have come, with those of headers, and stand in no message that was given out. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /** @param piece - viewed until `keep`, which must come before the next piece. */
  add(piece: Buffer): void {
    this.#pendingBytes += piece.byteLength
    this.#kept?.add(piece)
    if (this.#kept === undefined) this.#at = 0
    this.#source = this.#kept?.bytes ?? piece
  }

  /**
   * The next whole message; undefined until more has come.
   * @throws ServeError MESSAGE_TOO_LARGE as soon as a header claims too much.
   */
  next(): FramedMessage | undefined {
    const source = this.#source
    while (this.#at < source.byteLength) {
      const at = this.#at
      this.#at = this.#coming === undefined ? this.#addToHeader(at) : this.#coming.add(source, at)
      if (this.#coming?.isWhole === true) return this.#complete(this.#coming)
    }
    return undefined
  }

  /** Copies what has not been read. */
  keep(): void {
    if (this.#at === this.#source.byteLength) {
      this.#kept = undefined
      this.#source = EMPTY
      this.#at = 0
    } else if (this.#kept === undefined) {
      this.#kept = new ArrivingBytes()
      this.#kept.add(this.#source, this.#at)
      this.#source = this.#kept.bytes
      this.#at = 0
    }
  }

  /** Gives back what a message has that did not come as a whole: nothing more is added or read. */
  close(): void {
    this.#coming?.apart?.end()
    this.#coming = undefined
    this.#kept = undefined
    this.#source = EMPTY
    this.#at = 0
  }

  #addToHeader(at: number): number {
    const end = Math.min(this.#source.byteLength, at + FRAME_HEADER_BYTES - this.#headerBytes)
    this.#headerBytes += this.#source.copy(this.#header, this.#headerBytes, at, end)
    if (this.#headerBytes < FRAME_HEADER_BYTES) return end
    const length = this.#header.readUInt32BE(1)
    if (length > this.#maxBytes) {
      const text = `message has ${length} bytes, want at most ${this.#maxBytes} (--grpc-max-message-size)`
      throw new ServeError('MESSAGE_TOO_LARGE', text)
    }
    // A compressed message is put together as it is.
    const memory = this.#header.readUInt8() === 0 ? this.#memory : undefined
    this.#coming = new ArrivingMessage(length, memory)
    return end
  }

  #complete({ bytes, apart }: ArrivingMessage): FramedMessage {
    this.#coming = undefined
    this.#headerBytes = 0
    this.#pendingBytes -= FRAME_HEADER_BYTES + this.#header.readUInt32BE(1)
    return { flags: this.#header.readUInt8(), message: bytes, apart }
  }
}
