import { constants, type ServerHttp2Stream } from 'node:http2'
import type { CallContext, CallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { AdmissionTicket } from '../admission.ts'
import type { InferenceBackend } from '../inference-backend.ts'
import { answerError } from './answer-error.ts'
import { MessageFrames } from './message-frames.ts'
import type { WatchedCall, WriteWatch } from './write-watch.ts'

/** Calls that take no place in the admission are small; what is above this is no request that we know. */
const CONTROL_MESSAGE_BYTES = 4 * 1024 * 1024

export interface LiveCallOptions {
  readonly stream: ServerHttp2Stream
  readonly scope: CallScope
  /** Whom the call reaches. */
  readonly backend: InferenceBackend
  /** Absent for calls that neither infer nor load: they work under overload too, with small messages. */
  readonly ticket: AdmissionTicket | undefined
  /** Bound of an admitted message as it comes. */
  readonly maxMessageBytes: number
  readonly writeWatch: WriteWatch
}

/** One call from its headers to the end of its stream: its context, its place in the admission, and its one answer. */
export class LiveCall implements WatchedCall {
  readonly backend: InferenceBackend
  readonly #stream: ServerHttp2Stream
  readonly #scope: CallScope
  readonly #ticket: AdmissionTicket | undefined
  readonly #maxMessageBytes: number
  readonly #writeWatch: WriteWatch
  readonly #frames = new MessageFrames()
  /** Bytes that have come and belong to no message that was handed over yet. */
  #unreadBytes = 0
  #offeredAt: number | undefined
  #isAnswered = false
  #isClosed = false
  #onFail: ((error: ServeError) => void) | undefined
  #onStop: (() => void) | undefined
  #onClose: (() => void)[] | undefined

  constructor(o: LiveCallOptions) {
    const { stream, scope, ticket, maxMessageBytes, writeWatch } = o
    this.backend = o.backend
    this.#stream = stream
    this.#scope = scope
    this.#ticket = ticket
    this.#maxMessageBytes = ticket === undefined ? CONTROL_MESSAGE_BYTES : maxMessageBytes
    this.#writeWatch = writeWatch
  }

  get context(): CallContext {
    return this.#scope.context
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get offeredAt(): number | undefined {
    return this.#offeredAt
  }

  /** Counts bytes as they come off the connection, and fails the call if they go over a bound. */
  readonly onData = (chunk: Buffer): void => {
    if (this.#isAnswered) return
    try {
      const length = this.#frames.add(chunk)
      if (length > this.#maxMessageBytes) throw this.#tooLarge(length)
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
   * Counts a whole message in place of the bytes in which it came: they differ if it was compressed. What came of the
   * messages behind it stays counted.
   * @throws ServeError OVERLOADED
   */
  holdMessage(bytes: number): void {
    const frameBytes = this.#frames.next()
    this.#ticket?.release(frameBytes)
    this.#unreadBytes -= frameBytes
    this.#ticket?.charge(bytes)
  }

  /**
   * Counts an answer, or one of a stream, from when it is there; a call that has one gives it back with its end.
   * @throws ServeError OVERLOADED
   */
  holdAnswer(bytes: number): void {
    this.#ticket?.charge(bytes)
  }

  /** Gives a request or an answer of a stream back. */
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

  /** Says that the answer is given; what comes later is no cancellation any more, and the client has to take it. */
  answered(): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    this.offered()
  }

  /** Says that a response of a stream waits for the client, or that the client has taken one of several. */
  offered(): void {
    if (!this.#isClosed) this.#offeredAt = this.#writeWatch.begin()
  }

  /** Says that the client has taken all responses that there are so far. */
  allTaken(): void {
    // Of an answered stream the end is still to be taken.
    if (this.#isAnswered) this.offered()
    else this.#offeredAt = undefined
  }

  /** Resets the stream: its client takes nothing, so it could not be told why. */
  cutOff(timeoutMs: number): void {
    this.#scope.cancel(
      new ServeError('CANCELLED', `the client did not take its answer within ${timeoutMs} ms`),
    )
    // What gRPC clients read as RESOURCE_EXHAUSTED.
    this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
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

  #tooLarge(bytes: number): ServeError {
    return new ServeError(
      'MESSAGE_TOO_LARGE',
      `message has ${bytes} bytes, want at most ${this.#maxMessageBytes}`,
    )
  }
}
