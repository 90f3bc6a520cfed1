import type { Socket } from 'node:net'
import type { CallContext, CallScope, Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { ErrorCode, ownCopy, type ServerStream, type StreamHandler } from '@tutti/http2'
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
  /** Which models the call reaches. */
  readonly backend: InferenceBackend
  readonly ticket: AdmissionTicket
  readonly clock: Pick<Clock, 'now' | 'setTimer'>
  readonly requests: ClientRequests
  readonly log: GrpcLog
  readonly onClosed: (call: ServerCall) => void
}

/** Where the answer of a call goes. */
export type AnswerStream = Pick<ServerStream, 'respond' | 'write' | 'end'>

/** One call from its headers to the end of its stream: its context, its place in the admission, its messages, and its one status. */
export class ServerCall implements StreamHandler, WaitingCall {
  /** For the list of calls: where it stands there, and how many came before it. */
  place = 0
  number = 0
  readonly stream: ServerStream
  readonly headers: ServerStream['headers']
  /** The stream itself, or what compresses on the way to it. */
  answer: AnswerStream
  readonly backend: InferenceBackend
  readonly context: CallContext
  readonly maxMessageBytes: number
  readonly ticket: AdmissionTicket
  /** Tickets of messages that come, and of responses that the client has not taken: the ticket of the call, unless it is a stream. */
  reading: AdmissionTicket
  unread: AdmissionTicket
  readonly #o: ServerCallOptions
  /** Takes over from the first piece that is no whole message on. */
  reader: CallReader | undefined
  #receiver: MessageReceiver | undefined
  /** The one request of the call; absent if it is none or has several. */
  #request: ClientRequest | undefined
  /** The client may send nothing for as long as it likes. */
  mayIdle = false
  #offeredAt: number | undefined
  #isAnswered = false
  #isClosed = false
  #onStop: (() => void) | undefined
  #onClose: (() => void) | undefined

  constructor(o: ServerCallOptions) {
    this.#o = o
    this.stream = o.stream
    this.answer = o.stream
    this.headers = o.stream.headers
    this.backend = o.backend
    this.context = o.scope.context
    this.maxMessageBytes = o.maxMessageBytes
    this.ticket = this.reading = this.unread = o.ticket.belongTo(this)
  }

  get socket(): Socket {
    return this.#o.socket
  }

  /** When its client could first take the answer, or last took a response of a stream; undefined while there is none to take. */
  get offeredAt(): number | undefined {
    return this.#offeredAt
  }

  /** The status is given, or the client is gone. */
  get isOver(): boolean {
    return this.#isAnswered || this.#isClosed
  }

  /** For the admission: while the request comes its bytes, then those of the answer. */
  get movedBytes(): number {
    if (this.isOver) return this.stream.sentBytes
    return this.stream.receivedBytes + (this.reader?.inflatedBytes ?? 0)
  }

  /** Counts by itself what a stream reads and what it sends: it does both, and work too, at the same time. */
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
    return this.#o.requests.open(this.context.trace)
  }

  /** The call is one request, from here to its status. */
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

  /** Reads the one message of the call. @param answer - gets it once the client has sent all; what it throws fails the call. */
  readOne(answer: (message: Buffer, call: ServerCall) => void): void {
    this.read(new OnlyMessage(this, answer))
  }

  /** Most requests come as one piece, which is one message. The reader takes all that do not, from then on. */
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
    this.reader ??= new CallReader({ ...this.#o, call: this, receiver, encoding })
    return this.reader
  }

  /** Hands `receiver`, which the call reads for, no further messages until `resume`. */
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

  /** Counts bytes of requests and answers from when they are there. @throws ServeError OVERLOADED */
  charge(bytes: number): void {
    this.ticket.charge(bytes)
  }

  /** Gives a request or an answer of a stream back; the end of the call gives back everything. */
  release(bytes: number): void {
    this.ticket.release(bytes)
  }

  /** Reading the signal starts the deadline's timer, so only calls that have a deadline pay for one. */
  watchDeadline(): void {
    const { signal } = this.context
    const onAbort = () => this.fail(ServeError.from(signal.reason))
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
  }

  /** Takes note of the server's stop, for a call that would otherwise go on as long as its client likes. */
  whenStopping(onStop: () => void): void {
    this.#onStop = onStop
  }

  /** Takes note of the end of the call, whichever comes. */
  whenClosed(onClose: () => void): void {
    const before = this.#onClose
    this.#onClose = () => {
      before?.()
      onClose()
    }
  }

  /** The server takes no more requests. */
  stop(): void {
    this.#onStop?.()
  }

  /** A response waits for the client from now on, or the client has taken one of several. */
  offer(): void {
    if (!this.#isClosed) this.#offeredAt = this.#o.clock.now()
  }

  /** The client has taken all responses so far. Of an answered stream the end is still to be taken. */
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
   * @param pieces - of its last frame.
   * @param retain - of what they view, if `answer` is the stream.
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

  /** Ends a call with the error of its work. What was sent before it still arrives. @param id - of the request. */
  refuse(error: ServeError, id = ''): void {
    this.logFailure(error, id)
    if (this.isOver) return
    this.#answered()
    this.#sendError(error)
  }

  logFailure(error: ServeError, id: string): void {
    this.#o.log.callFailed(String(this.headers[':path']), error, { id, trace: this.context.trace })
  }

  /** Ends the call from outside, unless it was answered: deadline, overload, shutdown. Its work is told to stop. */
  fail(error: ServeError): void {
    if (this.isOver) return
    this.#answered()
    this.#o.scope.cancel(error)
    this.#sendError(error)
  }

  /** Resets the stream: its client takes nothing, so it could not be told why. */
  cutOff(error: ServeError): void {
    this.#o.scope.cancel(error)
    // Clients of gRPC read this code as RESOURCE_EXHAUSTED.
    this.stream.reset(ErrorCode.enhanceYourCalm)
  }

  /** For the admission: others need the bytes for whose client the call waits. Nothing of the request is kept. */
  endWaiting(error: ServeError): void {
    if (this.stream.hasResponded) {
      this.cutOff(error)
      return endIfStuck(this.#o)
    }
    this.fail(error)
    this.#receiver = undefined
    this.reader?.close()
    this.#closeTickets()
  }

  /** The stream is over: its bytes are given back, and work without a client is told to stop. */
  closed(): void {
    this.#isClosed = true
    if (!this.#isAnswered) {
      const cancelled = new ServeError('CANCELLED', 'the client cancelled the request')
      this.#o.scope.cancel(cancelled)
      this.#request?.ended(cancelled)
    }
    this.#o.scope.close()
    this.#closeTickets()
    this.reader?.close()
    this.#onClose?.()
    this.#o.onClosed(this)
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
