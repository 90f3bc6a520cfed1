import type { Socket } from 'node:net'
import type { CallContext, CallScope, Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { ErrorCode, ownCopy, type ServerStream, type StreamHandler } from '@tutti/http'
import type {
  AdmissionTicket,
  ClientRequest,
  ClientRequests,
  InferenceBackend,
  ResolvedModel,
  WaitingCall,
} from '@tutti/serving'
import type { Lent } from '@tutti/tensor'
import { ANSWER_HEADERS, OK_TRAILERS, respondOnlyTrailers, toTrailers } from './answer-headers.ts'
import { CallReader, type CallReaderOptions } from './call-reader.ts'
import { endIfStuck } from './end-if-stuck.ts'
import type { GrpcLog } from './log-events.ts'
import { FRAME_HEADER_BYTES, type MessageReceiver, notOneMessage } from './message-reader.ts'

export interface ServerCallOptions extends Pick<CallReaderOptions, 'maxMessageBytes' | 'memory'> {
  readonly stream: ServerStream
  /** The socket of the connection. */
  readonly socket: Socket
  readonly scope: CallScope
  /** The backend whose models the call reaches. */
  readonly backend: InferenceBackend
  readonly ticket: AdmissionTicket
  readonly clock: Pick<Clock, 'now' | 'setTimer'>
  readonly requests: ClientRequests
  readonly log: GrpcLog
  readonly onClosed: (call: ServerCall) => void
}

/** Where the answer of a call goes. */
export type AnswerStream = Pick<ServerStream, 'respond' | 'write' | 'end'>

/**
 * One call from its headers to the end of its stream: its context, its place in the admission, its messages, and its one
 * status.
 */
export class ServerCall implements StreamHandler, WaitingCall {
  /** Index of the call in the list of `ServerCalls`. */
  place = 0
  /** Count of calls that `ServerCalls` opened before this one. */
  number = 0
  readonly stream: ServerStream
  readonly headers: ServerStream['headers']
  /** The stream itself, or a wrapper that compresses the answer. */
  answer: AnswerStream
  readonly backend: InferenceBackend
  readonly context: CallContext
  readonly maxMessageBytes: number
  readonly ticket: AdmissionTicket
  /** Ticket of messages that come; equal to `ticket` until `splitTicket`. */
  reading: AdmissionTicket
  /** Ticket of responses that the client has not taken yet; equal to `ticket` until `splitTicket`. */
  unread: AdmissionTicket
  readonly #options: ServerCallOptions
  /** The reader of all pieces from the first one that is not exactly one message; undefined before that. */
  reader: CallReader | undefined
  #receiver: MessageReceiver | undefined
  /** The one request of the call; absent if it is none or has several. */
  #request: ClientRequest | undefined
  /** True if the client may stay silent without a limit, as on a stream. */
  mayIdle = false
  #offeredAt: number | undefined
  #isAnswered = false
  #isClosed = false
  #onStop: (() => void) | undefined
  #onClose: (() => void) | undefined

  constructor(o: ServerCallOptions) {
    this.#options = o
    this.stream = o.stream
    this.answer = o.stream
    this.headers = o.stream.headers
    this.backend = o.backend
    this.context = o.scope.context
    this.maxMessageBytes = o.maxMessageBytes
    this.ticket = this.reading = this.unread = o.ticket.belongTo(this)
  }

  get socket(): Socket {
    return this.#options.socket
  }

  /** Time of the clock, in ms, since which an answer or response waits for the client; undefined while none waits. */
  get offeredAt(): number | undefined {
    return this.#offeredAt
  }

  /** True once the call has its status, or the client is gone. */
  get isOver(): boolean {
    return this.#isAnswered || this.#isClosed
  }

  /** Bytes that have moved, for the admission: of the request until the call is over, then of the answer. */
  get movedBytes(): number {
    if (this.isOver) return this.stream.sentBytes
    return this.stream.receivedBytes + (this.reader?.inflatedBytes ?? 0)
  }

  /** Opens separate tickets for the bytes that a stream reads and sends: it reads, works and sends at the same time. */
  splitTicket(): void {
    const { stream, ticket } = this
    const taking: WaitingCall = {
      get movedBytes() {
        return stream.sentBytes
      },
      endWaiting: (error) => this.endWaiting(error),
    }
    this.reading = ticket.another()
    this.unread = ticket.another().belongTo(taking)
    ticket.belongTo(taking)
  }

  /** Begins a request of a stream. */
  openRequest(): ClientRequest {
    return this.#options.requests.open(this.context.trace)
  }

  /** Begins the one request of the call, which ends with the call's status. */
  beOneRequest(): void {
    this.#request = this.openRequest()
  }

  /** Finds the model of the one request. @throws ServeError as the backend does. */
  resolve(name: string, version: string): ResolvedModel {
    const { backend } = this
    return this.#request?.resolve(backend, name, version) ?? backend.resolve(name, version)
  }

  /** Begins to read messages. */
  read(receiver: MessageReceiver): void {
    this.#receiver = receiver
  }

  /**
   * Reads the one message of the call.
   *
   * @param answer - gets the message once the client has sent all; an error it throws fails the call.
   */
  readOne(answer: (message: Buffer, call: ServerCall) => void): void {
    this.read(new OnlyMessage(this, answer))
  }

  /** Takes a piece of the request. Most pieces are exactly one message; from the first other piece on, `reader` reads all. */
  data(piece: Buffer): void {
    const receiver = this.#receiver
    if (receiver === undefined || this.isOver) return
    try {
      if (this.reader !== undefined || !isPlainMessage(piece, this.maxMessageBytes))
        return this.#slowReader(receiver).add(piece)
      this.chargeRead(piece.byteLength - FRAME_HEADER_BYTES)
      if (this.isOver) return
      receiver.receive(ownCopy(piece.subarray(FRAME_HEADER_BYTES)))
    } catch (error) {
      this.fail(ServeError.from(error))
    }
  }

  ended(): void {
    if (this.reader !== undefined) return this.reader.end()
    if (this.isOver) return
    try {
      this.#receiver?.end(0)
    } catch (error) {
      this.fail(ServeError.from(error))
    }
  }

  #slowReader(receiver: MessageReceiver): CallReader {
    const encoding = this.headers['grpc-encoding'] ?? 'identity'
    this.reader ??= new CallReader({ ...this.#options, call: this, receiver, encoding })
    return this.reader
  }

  /** Delivers no further messages until `resume`. @param receiver - the receiver that the call reads for. */
  pause(receiver: MessageReceiver): void {
    this.#slowReader(receiver).pause()
    if (this.reading !== this.ticket) this.reading.waitForClient(false)
  }

  resume(): void {
    this.reader?.resume()
    // All that came meanwhile is read by now, or the call pauses again.
    if (this.reading !== this.ticket && this.reader?.isPaused === false)
      this.reading.waitForClient(undefined)
  }

  /** Counts bytes of a message as they come. @throws ServeError OVERLOADED */
  chargeRead(bytes: number): void {
    if (this.reading === this.ticket) this.charge(bytes)
    else this.reading.charge(bytes)
  }

  /** Counts bytes of a request or answer that the call holds from now on. @throws ServeError OVERLOADED */
  charge(bytes: number): void {
    this.ticket.charge(bytes)
  }

  /** Uncounts bytes of a request or answer of a stream. The end of the call uncounts the rest. */
  release(bytes: number): void {
    this.ticket.release(bytes)
  }

  /** Fails the call when its deadline passes. Reading the signal starts a timer, so only calls with a deadline do this. */
  watchDeadline(): void {
    const { signal } = this.context
    const onAbort = () => this.fail(ServeError.from(signal.reason))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  }

  /** Sets a callback for the server's stop. Calls need one if only their clients would end them. */
  whenStopping(onStop: () => void): void {
    this.#onStop = onStop
  }

  /** Adds a callback for the close of the call's stream, whatever its reason. */
  whenClosed(onClose: () => void): void {
    const before = this.#onClose
    this.#onClose = () => {
      before?.()
      onClose()
    }
  }

  /** Tells the call that the server stops and takes no more requests. */
  stop(): void {
    this.#onStop?.()
  }

  /** Sets `offeredAt` to now: a response waits for the client, or the client has taken one of several. */
  offer(): void {
    if (!this.#isClosed) this.#offeredAt = this.#options.clock.now()
  }

  /** Notes that the client has taken all responses so far. An answered stream still waits for the client to take its end. */
  allTaken(): void {
    if (this.#isAnswered) this.offer()
    else this.#offeredAt = undefined
  }

  /** Begins the answer, unless it has begun. */
  sendHeaders(): void {
    if (!this.stream.hasResponded) this.answer.respond(ANSWER_HEADERS)
  }

  /**
   * Ends a call that went well.
   *
   * @param pieces - the last frame, in pieces; viewed until they are sent.
   * @param retain - keeps the memory that the pieces view; only if `answer` is the stream.
   * @throws ServeError OVERLOADED
   */
  end(pieces: readonly Uint8Array[] = [], retain?: Lent['retain']): void {
    if (this.isOver) return
    for (const { byteLength } of pieces) this.charge(byteLength)
    this.#answered()
    this.sendHeaders()
    for (const piece of pieces) this.answer.write(piece, undefined, retain?.())
    this.answer.end(OK_TRAILERS)
    this.#request?.ended()
  }

  /** Ends a call with the error of its work. Responses that were sent before still arrive. @param id - the request's id. */
  refuse(error: ServeError, id = ''): void {
    this.logFailure(error, id)
    if (this.isOver) return
    this.#answered()
    this.#sendError(error)
  }

  logFailure(error: ServeError, id: string): void {
    this.#options.log.callFailed(String(this.headers[':path']), error, {
      id,
      trace: this.context.trace,
    })
  }

  /** Ends the call from outside, unless it was answered: deadline, overload, shutdown. Its work is told to stop. */
  fail(error: ServeError): void {
    if (this.isOver) return
    this.#answered()
    this.#options.scope.cancel(error)
    this.#sendError(error)
  }

  /** Resets the stream: its client takes nothing, so it could not be told why. */
  cutOff(error: ServeError): void {
    this.#options.scope.cancel(error)
    // Clients of gRPC read this code as RESOURCE_EXHAUSTED.
    this.stream.reset(ErrorCode.enhanceYourCalm)
  }

  /** Ends a call that waits for its client, because others need its bytes. Frees its request. */
  endWaiting(error: ServeError): void {
    if (this.stream.hasResponded) {
      this.cutOff(error)
      return endIfStuck(this.#options)
    }
    this.fail(error)
    this.#receiver = undefined
    this.reader?.close()
    this.#closeTickets()
  }

  /** Handles the end of the stream: gives back the call's bytes, and cancels its work if it has no answer yet. */
  closed(): void {
    this.#isClosed = true
    if (!this.#isAnswered) {
      const cancelled = new ServeError('CANCELLED', 'the client cancelled the request')
      this.#options.scope.cancel(cancelled)
      this.#request?.left(this.context.deadlineAt, cancelled)
    }
    this.#options.scope.close()
    this.#closeTickets()
    this.reader?.close()
    this.#onClose?.()
    this.#options.onClosed(this)
  }

  #closeTickets(): void {
    this.ticket.close()
    this.reading.close()
    this.unread.close()
  }

  #sendError(error: ServeError): void {
    if (this.stream.hasResponded) this.answer.end(toTrailers(error))
    else respondOnlyTrailers(this.stream, error)
    this.#request?.ended(error)
  }

  /** Notes that the call is answered: what comes later is no cancellation, and the client has to take the answer. */
  #answered(): void {
    this.#isAnswered = true
    this.ticket.leave()
    this.offer()
    // A client may read nothing before it has sent all.
    this.stream.resume()
  }
}

/** Receives the one message of a call, and hands it over once the client has sent all. */
class OnlyMessage implements MessageReceiver {
  readonly #call: ServerCall
  readonly #answer: (message: Buffer, call: ServerCall) => void
  #message: Buffer | undefined

  constructor(call: ServerCall, answer: (message: Buffer, call: ServerCall) => void) {
    this.#call = call
    this.#answer = answer
  }

  receive(message: Buffer): void {
    if (this.#message !== undefined) throw notOneMessage('a second message, want one')
    this.#message = message
  }

  end(surplusBytes: number): void {
    if (this.#message === undefined) throw notOneMessage(`${surplusBytes} bytes, want one message`)
    if (surplusBytes > 0) throw notOneMessage(`${surplusBytes} bytes after its message, want none`)
    this.#call.ticket.enter()
    this.#answer(this.#message, this.#call)
  }
}

/** Whether a piece is one whole frame of no more than `maxBytes` that is not compressed. */
function isPlainMessage(piece: Buffer, maxBytes: number): boolean {
  if (piece.byteLength < FRAME_HEADER_BYTES || piece[0] !== 0) return false
  const length = piece.readUInt32BE(1)
  return length <= maxBytes && piece.byteLength === FRAME_HEADER_BYTES + length
}
