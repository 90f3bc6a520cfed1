import type { ServerHttp2Stream } from 'node:http2'
import { ServeError } from '@tutti/errors'
import { inflateMessage } from './inflate.ts'
import { FRAME_HEADER_BYTES, MessageReader } from './message-reader.ts'

const COMPRESSED = 1

/** A call whose messages are read. */
export interface ReadCall {
  /** What comes from now on is thrown away. */
  readonly isOver: boolean
  /** Counts bytes as they come off the connection, and gives back with a negative number. @throws ServeError OVERLOADED */
  charge(bytes: number): void
  fail(error: ServeError): void
}

export interface CallReaderOptions {
  readonly call: ReadCall
  readonly stream: ServerHttp2Stream
  /** `grpc-encoding`. */
  readonly encoding: string
  readonly maxMessageBytes: number
  /** Takes the next message, which stays charged. */
  readonly onMessage: (message: Buffer) => void
  /** The client has sent all. @param bytes - that came after the last whole message. */
  readonly onEnd: (bytes: number) => void
}

/** Reads the messages of one call, in their order. While it is paused, HTTP/2's window holds the client up. */
export class CallReader {
  readonly #o: CallReaderOptions
  /** Splits the pieces, from the first that is no whole frame on. */
  #splitter: MessageReader | undefined
  #isEnded = false
  #isPaused = false
  #isInflating = false

  constructor(o: CallReaderOptions) {
    this.#o = o
    o.stream.on('data', (piece: Buffer) => this.#accept(piece))
    // Once, but `once` wraps its listener, and takes it off again.
    o.stream.on('end', () => {
      this.#isEnded = true
      this.#deliver()
    })
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#deliver()
  }

  #accept(piece: Buffer): void {
    const { call, maxMessageBytes } = this.#o
    if (call.isOver) return
    try {
      call.charge(piece.byteLength)
      if (this.#isReading && this.#splitter === undefined && isFrame(piece, maxMessageBytes)) {
        this.#read(piece)
      } else {
        this.#splitter ??= new MessageReader(maxMessageBytes)
        this.#splitter.add(piece)
      }
    } catch (error) {
      call.fail(ServeError.from(error))
      return
    }
    this.#deliver()
  }

  get #isReading(): boolean {
    return !this.#isPaused && !this.#isInflating && !this.#o.call.isOver
  }

  #deliver(): void {
    const { call, stream } = this.#o
    try {
      while (this.#isReading) {
        const frame = this.#splitter?.next()
        if (frame === undefined) return this.#atRest()
        this.#read(frame)
      }
    } catch (error) {
      call.fail(ServeError.from(error))
    }
    if (!this.#isEnded && !call.isOver) stream.pause()
  }

  /** All that has come is read. */
  #atRest(): void {
    const { stream, onEnd } = this.#o
    // A reset ends the stream too, and takes back what was asked.
    if (this.#isEnded) {
      if (!stream.aborted) onEnd(this.#splitter?.pendingBytes ?? 0)
    } else if (stream.isPaused()) stream.resume()
  }

  #read(frame: Buffer): void {
    const { call, onMessage } = this.#o
    const message = frame.subarray(FRAME_HEADER_BYTES)
    if (frame[0] === 0) {
      call.charge(-FRAME_HEADER_BYTES)
      onMessage(message)
    } else if (frame[0] === COMPRESSED) void this.#inflate(message)
    else throw new ServeError('MALFORMED_MESSAGE', `message has the flags ${frame[0]}, want 0 or 1`)
  }

  async #inflate(compressed: Buffer): Promise<void> {
    const { call, encoding, maxMessageBytes, onMessage } = this.#o
    this.#isInflating = true
    try {
      const message = await inflateMessage(compressed, encoding, maxMessageBytes)
      call.charge(message.byteLength - compressed.byteLength - FRAME_HEADER_BYTES)
      this.#isInflating = false
      if (!call.isOver) onMessage(message)
      this.#deliver()
    } catch (error) {
      call.fail(ServeError.from(error))
    }
  }
}

/** Whether a piece is one whole frame of no more than that. */
function isFrame(piece: Buffer, maxBytes: number): boolean {
  if (piece.byteLength < FRAME_HEADER_BYTES) return false
  const length = piece.readUInt32BE(1)
  return length <= maxBytes && piece.byteLength === FRAME_HEADER_BYTES + length
}
