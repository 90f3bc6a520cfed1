import { ServeError } from '@tutti/errors'
import { ArrivingBytes } from '@tutti/serving'
import type { TensorMemory } from '@tutti/tensor'
import type { ApartTensors } from './apart-tensors.ts'
import { ArrivingMessage } from './arriving-message.ts'

/** Bytes of the header before each gRPC message: one byte of flags, four bytes of the message's length. */
export const FRAME_HEADER_BYTES = 5
const EMPTY = Buffer.alloc(0)

/** The receiver of the messages of one call. An error that a method throws fails the call. */
export interface MessageReceiver {
  /** Takes the next message, which stays charged until it is released. */
  receive(message: Buffer): void
  /** Takes the end of the messages: the client has sent all. @param surplusBytes - bytes after the last whole message. */
  end(surplusBytes: number): void
}

/** Makes the error MALFORMED_MESSAGE for a call that has not exactly one message. @param got - the call's contents, as text. */
export function notOneMessage(got: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', `call has ${got}`)
}

/** A message with the flags that stand before it. */
export interface FramedMessage {
  readonly flags: number
  readonly message: Buffer
  /** Large tensors, which `message` does not contain; undefined if there are none. */
  readonly apart: ApartTensors | undefined
}

/**
 * Puts the messages of a call together from pieces: a piece may hold several messages, end in the middle of one, or cut a
 * header in two. Each message is copied once, into its own memory, and each of its large tensors into a part of `memory`.
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
   * @param maxBytes - the most bytes that a header may claim for its message.
   * @param memory - for the large tensors of inference requests; absent: they stay in their messages.
   */
  constructor(maxBytes: number, memory?: TensorMemory) {
    this.#maxBytes = maxBytes
    this.#memory = memory
  }

  /** Bytes that have come and belong to no message given out yet, headers included. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  /** Takes the next piece. @param piece - viewed until `keep`, which must be called before the next piece. */
  add(piece: Buffer): void {
    this.#pendingBytes += piece.byteLength
    this.#kept?.add(piece)
    if (this.#kept === undefined) this.#at = 0
    this.#source = this.#kept?.bytes ?? piece
  }

  /**
   * Reads the next whole message.
   *
   * @returns undefined until more has come.
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

  /** Copies the bytes of the last piece that were not read, so that the piece's memory may be used again. */
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

  /** Frees the tensors of a message that did not come as a whole. Nothing is added or read afterwards. */
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
