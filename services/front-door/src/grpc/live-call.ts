import type { ServerHttp2Stream } from 'node:http2'
import type { CallContext, CallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { AdmissionTicket } from '../admission.ts'
import { answerError } from './answer-error.ts'

/** Calls other than inference are small; what is above this is no request that we know. */
const CONTROL_MESSAGE_BYTES = 4 * 1024 * 1024

/** What a message begins with in gRPC: one byte of flags and its length in four. */
const FRAME_HEADER_BYTES = 5

export interface LiveCallOptions {
  readonly stream: ServerHttp2Stream
  readonly scope: CallScope
  /** Absent for calls that are not inference: they work under overload too, with small messages. */
  readonly ticket: AdmissionTicket | undefined
  /** Bound of an inference message as it comes. */
  readonly maxMessageBytes: number
}

/** One call from its headers to the end of its stream: its context, its place in the admission, and its one answer. */
export class LiveCall {
  readonly #stream: ServerHttp2Stream
  readonly #scope: CallScope
  readonly #ticket: AdmissionTicket | undefined
  readonly #maxMessageBytes: number
  /** Bytes that have come since the last whole message. */
  #unreadBytes = 0
  #isAnswered = false
  #isClosed = false
  #onFail: ((error: ServeError) => void) | undefined
  #onStop: (() => void) | undefined
  #onClose: (() => void)[] | undefined

  constructor({ stream, scope, ticket, maxMessageBytes }: LiveCallOptions) {
    this.#stream = stream
    this.#scope = scope
    this.#ticket = ticket
    this.#maxMessageBytes = ticket === undefined ? CONTROL_MESSAGE_BYTES : maxMessageBytes
  }

  get context(): CallContext {
    return this.#scope.context
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Counts bytes as they come off the connection, and fails the call if they go over a bound. */
  readonly onData = (chunk: Buffer): void => {
    if (this.#isAnswered) return
    try {
      if (this.#unreadBytes === 0) this.#checkLength(chunk)
      this.#ticket?.charge(chunk.byteLength)
      this.#unreadBytes += chunk.byteLength
      if (this.#ticket === undefined && this.#unreadBytes > CONTROL_MESSAGE_BYTES) {
        throw this.#tooLarge(this.#unreadBytes)
      }
    } catch (error) {
      this.fail(ServeError.from(error))
    }
  }

  /**
   * Counts a whole message in place of the bytes in which it came: they differ if it was compressed.
   * @throws ServeError OVERLOADED
   */
  holdMessage(bytes: number): void {
    this.#ticket?.release(this.#unreadBytes)
    this.#unreadBytes = 0
    this.#ticket?.charge(bytes)
  }

  /** Gives a message of a request stream back. */
  releaseMessage(bytes: number): void {
    this.#ticket?.release(bytes)
  }

  /** Takes over how the call is failed, for a call that may have begun to answer. */
  failWith(onFail: (error: ServeError) => void): void {
    this.#onFail = onFail
  }

  /** Takes note of the server's stop, for a call that would otherwise go on as long as its client likes. */
  whenStopping(onStop: () => void): void {
    this.#onStop = onStop
  }

  /** The server takes no more requests. */
  stop(): void {
    this.#onStop?.()
  }

  /** Ends the call with an error, unless it was answered: deadline, overload, shutdown. Its work is told to stop. */
  fail(error: ServeError): void {
    if (this.#isAnswered || this.#isClosed) return
    this.answered()
    this.#scope.cancel(error)
    if (this.#onFail === undefined) answerError(this.#stream, error)
    else this.#onFail(error)
  }

  /** Says that the answer is given to grpc-js; what comes later is no cancellation any more. */
  answered(): void {
    this.#isAnswered = true
  }

  /** Calls back once the stream is over, at once if it is. */
  whenClosed(callback: () => void): void {
    if (this.#isClosed) return callback()
    this.#onClose ??= []
    this.#onClose.push(callback)
  }

  /** The stream is over: its bytes are given back, and work that nobody waits for any more is told to stop. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (!this.#isAnswered) {
      this.#scope.cancel(new ServeError('CANCELLED', 'the client cancelled the request'))
    }
    this.#scope.close()
    this.#ticket?.close()
    for (const callback of this.#onClose ?? []) callback()
  }

  /** grpc-js checks lengths as well, but cannot give our reason; it remains for headers that come in pieces. */
  #checkLength(chunk: Buffer): void {
    if (chunk.byteLength < FRAME_HEADER_BYTES) return
    const length = chunk.readUInt32BE(1)
    if (length > this.#maxMessageBytes) throw this.#tooLarge(length)
  }

  #tooLarge(bytes: number): ServeError {
    return new ServeError(
      'MESSAGE_TOO_LARGE',
      `message has ${bytes} bytes, want at most ${this.#maxMessageBytes}`,
    )
  }
}
