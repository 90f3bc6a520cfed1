import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import { Metadata } from '@grpc/grpc-js'
import type { CallContext, CallScope } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { AdmissionTicket } from '../admission.ts'
import type { InferenceBackend } from '../inference-backend.ts'
import { CallReader, type ReadCall } from './call-reader.ts'
import { ACCEPTED_ENCODINGS } from './inflate.ts'
import type { GrpcLog } from './log-events.ts'
import { SentResponses } from './sent-responses.ts'
import { CONTENT_TYPE, respondOnlyTrailers, toTrailers } from './status-trailers.ts'

/** As a list of names and values, which Node takes without copying and sorting them first. */
const ANSWER_HEADERS = [
  ':status',
  '200',
  'content-type',
  CONTENT_TYPE,
  'grpc-accept-encoding',
  ACCEPTED_ENCODINGS,
] as const

const ANSWER_OPTIONS = { waitForTrailers: true, sendDate: false } as const

const OK_TRAILERS: OutgoingHttpHeaders = { 'grpc-status': '0' }

/** A method of one message and one answer. */
export interface OneAnswer<Response = unknown> {
  /** @param maxBytes - the bound of a message. */
  answer(message: Buffer, call: ServerCall, maxBytes: number): Response | Promise<Response>
  /** Makes a frame of the response. */
  encode(response: Response): Buffer
}

export interface ServerCallOptions {
  readonly stream: ServerHttp2Stream
  readonly headers: IncomingHttpHeaders
  readonly scope: CallScope
  /** Whom the call reaches. */
  readonly backend: InferenceBackend
  /** Absent for calls that neither infer nor load: they work under overload too, with small messages. */
  readonly ticket: AdmissionTicket | undefined
  /** Bound of a message, compressed or not. */
  readonly maxMessageBytes: number
  /** The client has something to take from now on. @returns now. */
  readonly onOffer: () => number
  readonly log: GrpcLog
}

/** One call from its headers to the end of its stream: its context, its place in the admission, its messages, and its one status. */
export class ServerCall implements ReadCall {
  readonly #o: ServerCallOptions
  readonly #stream: ServerHttp2Stream
  #reader: CallReader | undefined
  #sent: SentResponses | undefined
  #offeredAt: number | undefined
  #isAnswered = false
  #isClosed = false
  #onStop: (() => void) | undefined

  constructor(o: ServerCallOptions) {
    this.#o = o
    this.#stream = o.stream
  }

  get backend(): InferenceBackend {
    return this.#o.backend
  }

  get context(): CallContext {
    return this.#o.scope.context
  }

  /** What the client sent before its messages; values of `-bin` keys are bytes. */
  get metadata(): Metadata {
    return Metadata.fromHttp2Headers(this.#o.headers)
  }

  /** When its client could first take the answer, or last took a response of a stream; undefined while there is none to take. */
  get offeredAt(): number | undefined {
    return this.#offeredAt
  }

  /** The status is given, or the client is gone. */
  get isOver(): boolean {
    return this.#isAnswered || this.#isClosed
  }

  /** Begins to read messages, each of which stays charged until `release`. What the listeners throw fails the call. */
  read(onMessage: (message: Buffer) => void, onEnd: (surplusBytes: number) => void): void {
    const { stream, headers, maxMessageBytes } = this.#o
    const encoding = headers['grpc-encoding']
    this.#reader = new CallReader({
      call: this,
      stream,
      encoding: encoding === undefined ? 'identity' : String(encoding),
      maxMessageBytes,
      onMessage,
      onEnd,
    })
  }

  /** Reads the one message of the call, and hands it over once the client has sent all. */
  readOne(onMessage: (message: Buffer) => void): void {
    let only: Buffer | undefined
    this.read(
      (message) => {
        if (only !== undefined) throw malformed('call has a second message, want one')
        only = message
      },
      (surplusBytes) => {
        if (only === undefined) throw malformed(`call has ${surplusBytes} bytes, want one message`)
        if (surplusBytes > 0) {
          throw malformed(`call has ${surplusBytes} bytes after its message, want none`)
        }
        onMessage(only)
      },
    )
  }

  /** Answers the one message of the call with one response, or with its error. */
  answerOne(method: OneAnswer): void {
    this.readOne((message) => void this.#answer(message, method))
  }

  /** Never rejects. */
  async #answer(message: Buffer, method: OneAnswer): Promise<void> {
    try {
      const response = await method.answer(message, this, this.#o.maxMessageBytes)
      // The deadline may have been answered, or the client gone, meanwhile.
      if (!this.isOver) this.end(method.encode(response))
    } catch (error) {
      this.refuse(ServeError.from(error))
    }
  }

  /** Reads no further messages until `resume`. */
  pause(): void {
    this.#reader?.pause()
  }

  resume(): void {
    this.#reader?.resume()
  }

  /** Counts bytes of requests and answers from when they are there. @throws ServeError OVERLOADED */
  charge(bytes: number): void {
    this.#o.ticket?.charge(bytes)
  }

  /** Gives a request or an answer of a stream back; the end of the call gives back everything. */
  release(bytes: number): void {
    this.#o.ticket?.release(bytes)
  }

  /** Takes note of the server's stop, for a call that would otherwise go on as long as its client likes. */
  whenStopping(onStop: () => void): void {
    this.#onStop = onStop
  }

  /** The server takes no more requests. */
  stop(): void {
    this.#onStop?.()
  }

  /** Begins the answer. Nothing happens if it has begun. */
  sendHeaders(metadata?: Metadata): void {
    if (this.#stream.headersSent) return
    const headers =
      metadata === undefined
        ? ANSWER_HEADERS
        : {
            ':status': 200,
            'content-type': CONTENT_TYPE,
            'grpc-accept-encoding': ACCEPTED_ENCODINGS,
            ...metadata.toHttp2Headers(),
          }
    this.#stream.respond(headers, ANSWER_OPTIONS)
  }

  /**
   * Sends one of several responses.
   *
   * @param frame - charged; given back once the client has taken it or is gone.
   * @returns undefined while the client keeps up, else the wait for it.
   */
  send(frame: Buffer): Promise<void> | undefined {
    const { byteLength } = frame
    if (this.isOver || this.#stream.destroyed || this.#stream.closed) {
      this.release(byteLength)
      return undefined
    }
    this.sendHeaders()
    if (this.#offeredAt === undefined) this.#offer()
    this.#sent ??= new SentResponses(this.#stream, (bytes, isAll) => this.#taken(bytes, isAll))
    return this.#sent.send(frame)
  }

  /** Ends a call that went well. @param frame - the one response or the last. @throws ServeError OVERLOADED */
  end(frame?: Buffer, metadata?: Metadata): void {
    if (this.isOver) return
    if (frame !== undefined) this.charge(frame.byteLength)
    this.#answered()
    const stream = this.#stream
    if (stream.destroyed || stream.closed) return
    this.sendHeaders()
    if (metadata === undefined) stream.on('wantTrailers', sendOkTrailers)
    else sendWhenWanted(stream, { ...OK_TRAILERS, ...metadata.toHttp2Headers() })
    stream.end(frame)
  }

  /** Ends a call with the error of its work. What was sent before it still arrives. */
  refuse(error: ServeError): void {
    this.logFailure(error)
    if (this.isOver) return
    this.#answered()
    this.#sendError(error)
  }

  logFailure(error: ServeError): void {
    this.#o.log.callFailed(String(this.#o.headers[':path']), error)
  }

  /** Ends the call from outside, unless it was answered: deadline, overload, shutdown. Its work is told to stop. */
  fail(error: ServeError): void {
    if (this.isOver) return
    this.#answered()
    this.#o.scope.cancel(error)
    this.#sendError(error)
  }

  /** Resets the stream: its client takes nothing, so it could not be told why. */
  cutOff(timeoutMs: number): void {
    this.#o.scope.cancel(
      new ServeError('CANCELLED', `the client did not take its answer within ${timeoutMs} ms`),
    )
    // What gRPC clients read as RESOURCE_EXHAUSTED.
    this.#stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }

  /** The stream is over: its bytes are given back, and work that nobody waits for any more is told to stop. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const { scope, ticket } = this.#o
    if (!this.#isAnswered) {
      scope.cancel(new ServeError('CANCELLED', 'the client cancelled the request'))
    }
    scope.close()
    ticket?.close()
    this.#sent?.goOn()
  }

  #sendError(error: ServeError): void {
    const stream = this.#stream
    if (stream.destroyed || stream.closed) return
    if (!stream.headersSent) return respondOnlyTrailers(stream, error)
    sendWhenWanted(stream, toTrailers(error))
    stream.end()
  }

  /** What comes later is no cancellation any more, and the client has to take the answer. */
  #answered(): void {
    this.#isAnswered = true
    this.#offer()
    // Else what is not read would keep the stream from closing.
    if (this.#stream.isPaused()) this.#stream.resume()
  }

  /** A response waits for the client from now on, or the client has taken one of several. */
  #offer(): void {
    if (!this.#isClosed) this.#offeredAt = this.#o.onOffer()
  }

  #taken(bytes: number, isAll: boolean): void {
    this.release(bytes)
    // Of an answered stream the end is still to be taken.
    if (!isAll || this.#isAnswered) this.#offer()
    else this.#offeredAt = undefined
  }
}

function sendOkTrailers(this: ServerHttp2Stream): void {
  sendTrailers(this, OK_TRAILERS)
}

function sendWhenWanted(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  stream.on('wantTrailers', () => sendTrailers(stream, trailers))
}

function sendTrailers(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  stream.sendTrailers(trailers)
  if (stream.readableEnded) return
  // Not at once: a reset would overtake the trailers.
  setImmediate(() => {
    if (!stream.destroyed && !stream.closed) stream.close(constants.NGHTTP2_NO_ERROR)
  })
}

function malformed(message: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', message)
}
