import { ServeError } from '@tutti/errors'
import type { ServerStream } from '@tutti/http'
import type { TensorMemory } from '@tutti/tensor'
import type { ApartTensors } from './apart-tensors.ts'
import { inflateMessage } from './inflate.ts'
import {
  FRAME_HEADER_BYTES,
  type FramedMessage,
  MessageReader,
  type MessageReceiver,
} from './message-reader.ts'

const COMPRESSED = 1

export interface CallReaderOptions {
  readonly call: {
    /** True if all that comes from now on is thrown away. */
    readonly isOver: boolean
    /** True for a stream: its client may send any number of messages, or stay silent. */
    readonly mayIdle: boolean
    /** Counts bytes that have come. */
    chargeRead(bytes: number): void
    fail(error: ServeError): void
    whenClosed(onClose: () => void): void
  }
  readonly stream: Pick<ServerStream, 'windowBytes' | 'pause' | 'resume'>
  readonly receiver: MessageReceiver
  /** `grpc-encoding`. */
  readonly encoding: string
  /** Bytes of a message, compressed or not. */
  readonly maxMessageBytes: number
  /** Memory for the large tensors of inference requests; undefined: they stay in their messages. */
  readonly memory: TensorMemory | undefined
}

/** The progress of a call whose client is in the middle of a message. */
export interface ReadProgress {
  /** Whole messages that came before. */
  readonly messages: number
  /** Bytes of the unfinished message that have come. */
  readonly bytes: number
}

/**
 * Reads the messages of a call in their order. A call needs a reader once a piece is not exactly one uncompressed message, or
 * once the call pauses. While it is paused, HTTP/2 flow control holds its client up.
 */
export class CallReader {
  readonly #options: CallReaderOptions
  readonly #splitter: MessageReader
  /**
   * The large tensors of the message that the receiver got last. For a call with one message the reader has them ended when the
   * call closes; a receiver of several messages ends the tensors of each.
   */
  apart: ApartTensors | undefined
  /** Bytes that compressed messages have become so far. */
  inflatedBytes = 0
  #messages = 0
  #isEnded = false
  #isPaused = false
  #isInflating = false
  /** Bytes of the window, counted while the client is to wait. */
  #heldBytes = 0
  /** Bytes of these that have come. */
  #heldTaken = 0

  constructor(o: CallReaderOptions) {
    this.#options = o
    this.#splitter = new MessageReader(o.maxMessageBytes, o.memory)
  }

  /**
   * The progress of a message that the client has begun and not finished; undefined without one, or while the call holds it up.
   */
  get begun(): ReadProgress | undefined {
    const bytes = this.#splitter.pendingBytes
    if (bytes === 0 || this.#isPaused || this.#isInflating) return undefined
    return { messages: this.#messages, bytes }
  }

  /** True while the call holds its client up. */
  get isPaused(): boolean {
    return this.#isPaused
  }

  /**
   * Reads a piece and delivers the messages that it completes.
   *
   * @param piece - read or copied at once.
   * @throws ServeError OVERLOADED
   */
  add(piece: Buffer): void {
    if (this.#heldBytes > 0) this.#heldTaken += piece.byteLength
    else this.#options.call.chargeRead(piece.byteLength)
    this.#splitter.add(piece)
    this.#deliver()
    this.#splitter.keep()
  }

  /** Notes that the client has sent all. The receiver's `end` follows the last message. */
  end(): void {
    this.#isEnded = true
    this.#deliver()
  }

  /** Ends the reading: the call is over, and nothing more comes. */
  close(): void {
    this.#splitter.close()
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#deliver()
  }

  #deliver(): void {
    const { call } = this.#options
    try {
      while (!this.#isPaused && !this.#isInflating && !call.isOver) {
        const framed = this.#splitter.next()
        if (framed === undefined) return this.#atRest()
        this.#read(framed)
      }
      this.#hold()
    } catch (error) {
      call.fail(ServeError.from(error))
    }
  }

  /**
   * Lets the client of a request stream wait, and counts the window that it may fill meanwhile. Of a call with one message only
   * the end is to come, and more than that counts as it comes.
   */
  #hold(): void {
    const { call, stream } = this.#options
    if (!call.mayIdle || this.#isEnded || call.isOver || this.#heldBytes > 0) return
    call.chargeRead(stream.windowBytes)
    this.#heldBytes = stream.windowBytes
    stream.pause()
  }

  /** All that has come is read. */
  #atRest(): void {
    const { call, stream, receiver } = this.#options
    if (this.#heldBytes > 0) {
      call.chargeRead(this.#heldTaken - this.#heldBytes)
      this.#heldBytes = this.#heldTaken = 0
      stream.resume()
    }
    if (this.#isEnded) receiver.end(this.#splitter.pendingBytes)
  }

  #read({ flags, message, apart }: FramedMessage): void {
    const { call, receiver } = this.#options
    this.#messages += 1
    this.apart = apart
    if (flags === 0) {
      call.chargeRead(-FRAME_HEADER_BYTES)
      if (apart !== undefined && !call.mayIdle) call.whenClosed(() => apart.end())
      try {
        receiver.receive(message)
      } catch (error) {
        apart?.end()
        throw error
      }
    } else if (flags === COMPRESSED) void this.#inflate(message)
    else throw new ServeError('MALFORMED_MESSAGE', `message has the flags ${flags}, want 0 or 1`)
  }

  async #inflate(compressed: Buffer): Promise<void> {
    const { call, encoding, maxMessageBytes, receiver } = this.#options
    this.#isInflating = true
    try {
      const message = await inflateMessage(compressed, {
        encoding,
        maxBytes: maxMessageBytes,
        charge: (bytes) => {
          // A call that is over has given its bytes back and counts no more.
          if (call.isOver) throw new ServeError('CANCELLED', 'the call is over')
          this.inflatedBytes += bytes
          call.chargeRead(bytes)
        },
      })
      call.chargeRead(-compressed.byteLength - FRAME_HEADER_BYTES)
      this.#isInflating = false
      if (!call.isOver) receiver.receive(message)
      this.#deliver()
    } catch (error) {
      call.fail(ServeError.from(error))
    }
  }
}
