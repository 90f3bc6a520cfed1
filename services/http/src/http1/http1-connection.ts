import type { Socket } from 'node:net'
import { type AnswerHead, formatDate, formatFields, formatStatus } from './answer-head.ts'
import { BegunHead } from './begun-head.ts'
import { ChunkedBody } from './chunked-body.ts'
import { Exchange, type ExchangeConnection } from './exchange.ts'
import { HttpFault } from './http-fault.ts'
import { headTooLong, MAX_HEAD_BYTES, parseHead, type RequestHead } from './request-head.ts'

/** Handler for the requests of a connection. */
export interface RequestHandler {
  /** Takes a request. Answers it, now or later. Never throws. */
  request(exchange: Exchange): void
  /** Makes the answer to a request that cannot be read. The connection ends with it. */
  refusal(fault: HttpFault): WholeAnswer
}

/** An answer whose bytes are all there. */
export interface WholeAnswer extends AnswerHead {
  readonly parts: readonly Uint8Array[]
}

/** Bounds on the time that a client may take. */
export interface ConnectionTimes {
  /** Time from the first byte of a request to the last byte of its head; for the first request, from the connection. */
  readonly headersTimeoutMs: number
  /** Time from the first byte of a request to its last. */
  readonly requestTimeoutMs: number
  /** Time after which a connection without a request is closed. */
  readonly keepAliveMs: number
}

const HEAD_END = Buffer.from('\r\n\r\n')
const CARRIAGE_RETURN = 0x0d
const LINE_FEED = 0x0a
const NOTHING = Buffer.alloc(0)
/** Bytes that are kept of the requests behind the one that is in work, before the connection stops reading. */
const MAX_KEPT_BYTES = 16_384
/** Time for the client to read the last answer of a connection, and to end it too. */
const LINGER_MS = 500
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'

/**
 * The server's end of one HTTP/1.1 connection. Its requests are served one after the other. @see RFC 9112
 */
export class Http1Connection implements ExchangeConnection {
  readonly socket: Socket
  readonly #handler: RequestHandler
  readonly #times: ConnectionTimes
  readonly #stayingFields: string
  /** Bytes of a head that is not whole, or behind the request that is in work. */
  #kept = NOTHING
  /** Check of the head that is not whole. */
  #begun: BegunHead | undefined
  #exchange: Exchange | undefined
  #isInBody = false
  #bodyBytesLeft = 0
  #chunks: ChunkedBody | undefined
  /** True while the client sends no body because it was not asked. */
  #isBodyAwaited = false
  #isReading = false
  #isPaused = false
  #isStopping = false
  /** True once an answer has told the client that it is the last. */
  #isEnding = false
  #isClosed = false
  /** When the first byte of the request came; undefined between requests. */
  #beganAt: number | undefined = performance.now()
  #idleSince = 0

  constructor(socket: Socket, handler: RequestHandler, times: ConnectionTimes) {
    this.socket = socket
    this.#handler = handler
    this.#times = times
    const seconds = Math.floor(times.keepAliveMs / 1000)
    this.#stayingFields = `connection: keep-alive\r\nkeep-alive: timeout=${seconds}\r\n`
  }

  /** Takes bytes of the client: a view that is valid during the call. */
  receive(bytes: Buffer): void {
    if (this.#isClosed) return
    const kept = this.#kept
    if (kept.byteLength === 0) return this.#advance(bytes)
    this.#kept = NOTHING
    this.#advance(Buffer.concat([kept, bytes]))
  }

  /**
   * Takes the end of what the client sends. A client that ends before its answer is given to the socket has left, as with
   * node:http.
   */
  receiveEnd(): void {
    if (this.#exchange?.isGiven ?? true) this.#isEnding = true
    else this.destroy()
  }

  /** Ends the connection after the request that is in work, at once if there is none. */
  stop(): void {
    this.#isStopping = true
    if (this.#isIdle && !this.#isEnding) this.destroy()
  }

  /** Ends the connection as it stands. */
  destroy(): void {
    this.close()
    this.socket.destroy()
  }

  /** Ends the request of a connection that is gone. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#kept = NOTHING
    this.#exchange?.close()
  }

  /** Ends a connection whose client takes too long. @param now - as `performance.now()`. */
  checkTimes(now: number): void {
    if (this.#isClosed) return
    const { headersTimeoutMs, requestTimeoutMs, keepAliveMs } = this.#times
    const isInHead = this.#exchange === undefined && !this.#isInBody
    if (this.#beganAt === undefined) {
      if (now - this.#idleSince >= keepAliveMs) this.destroy()
    } else if (isInHead || this.#isInBody) {
      const limitMs = isInHead ? Math.min(headersTimeoutMs, requestTimeoutMs) : requestTimeoutMs
      if (now - this.#beganAt >= limitMs) {
        this.#refuse(new HttpFault(408, 'the request did not come within its time'))
      }
    }
  }

  endingFields(isLast: boolean): string {
    this.#isEnding ||= isLast || this.#isStopping || this.#isBodyAwaited
    return this.#isEnding ? 'connection: close\r\n' : this.#stayingFields
  }

  askForBody(): void {
    if (!this.#isBodyAwaited) return
    this.#isBodyAwaited = false
    this.socket.write(CONTINUE, 'latin1')
  }

  flow(): void {
    if (this.#isClosed) return
    const exchange = this.#exchange
    const hasMany = this.#kept.byteLength > MAX_KEPT_BYTES
    const wantsPause = exchange !== undefined && (hasMany || exchange.wantsPause)
    if (wantsPause === this.#isPaused) return
    this.#isPaused = wantsPause
    if (wantsPause) this.socket.pause()
    else this.socket.resume()
  }

  over(): void {
    this.#exchange = undefined
    if (this.#isClosed) return
    if (this.#isEnding) return this.#linger()
    this.#endRequest()
    if (this.#isReading) return
    const kept = this.#kept
    this.#kept = NOTHING
    this.#advance(kept)
  }

  #advance(bytes: Buffer): void {
    let at = 0
    this.#isReading = true
    try {
      while (at < bytes.byteLength && !this.#isClosed) {
        const next = this.#take(bytes, at)
        if (next === at) break
        at = next
      }
    } catch (error) {
      if (!(error instanceof HttpFault)) throw error
      this.#refuse(error)
    } finally {
      this.#isReading = false
    }
    if (this.#isClosed) return
    if (at < bytes.byteLength) this.#kept = Buffer.from(bytes.subarray(at))
    // The answer that is out by now did not tell the client so.
    if (this.#isStopping && this.#isIdle) return this.#linger()
    this.flow()
  }

  /** True between requests. */
  get #isIdle(): boolean {
    return this.#exchange === undefined && !this.#isInBody && this.#kept.byteLength === 0
  }

  /** Takes one thing from the bytes. @returns where the rest begins, which is `at` if the next thing has to wait. */
  #take(bytes: Buffer, at: number): number {
    if (this.#isInBody) return this.#takeBody(bytes, at)
    return this.#exchange === undefined ? this.#takeHead(bytes, at) : at
  }

  #takeHead(bytes: Buffer, at: number): number {
    let begin = at
    while (bytes[begin] === CARRIAGE_RETURN && bytes[begin + 1] === LINE_FEED) begin += 2
    // Empty lines before a request are not its first bytes.
    const isEmpty = begin >= bytes.byteLength - (bytes[begin] === CARRIAGE_RETURN ? 1 : 0)
    if (isEmpty) return begin
    this.#beganAt ??= performance.now()
    const end = bytes.indexOf(HEAD_END, begin)
    // A head of the greatest size may have come with all but the last byte of the empty line.
    const byteLength = (end < 0 ? bytes.byteLength - HEAD_END.byteLength + 1 : end) - begin
    if (byteLength > MAX_HEAD_BYTES) throw headTooLong()
    if (end >= 0) {
      this.#begun = undefined
      this.#begin(parseHead(bytes.toString('latin1', begin, end)))
      return end + HEAD_END.byteLength
    }
    this.#begun ??= new BegunHead()
    this.#begun.check(bytes, begin)
    return begin
  }

  #begin(head: RequestHead): void {
    const { bodyBytes, headers, isHttp10 } = head
    this.#bodyBytesLeft = bodyBytes ?? 0
    this.#chunks = bodyBytes === undefined ? new ChunkedBody() : undefined
    this.#isInBody = bodyBytes !== 0
    const isAsking = headers.expect?.toLowerCase() === '100-continue'
    this.#isBodyAwaited = isAsking && this.#isInBody && !isHttp10
    const exchange = new Exchange(head, this)
    this.#exchange = exchange
    if (!this.#isInBody) exchange.takeEnd()
    this.#handler.request(exchange)
  }

  #takeBody(bytes: Buffer, at: number): number {
    const chunks = this.#chunks
    this.#isBodyAwaited = false
    if (chunks !== undefined) {
      const next = chunks.take(bytes, at, this.#takePiece)
      if (chunks.isWhole) this.#endBody()
      return next
    }
    const end = Math.min(bytes.byteLength, at + this.#bodyBytesLeft)
    this.#bodyBytesLeft -= end - at
    this.#takePiece(bytes.subarray(at, end))
    if (this.#bodyBytesLeft === 0) this.#endBody()
    return end
  }

  /** Gives a piece of the body to its reader. What comes behind the answer is dropped. */
  readonly #takePiece = (piece: Buffer): void => this.#exchange?.take(piece)

  #endBody(): void {
    this.#isInBody = false
    this.#exchange?.takeEnd()
    this.#endRequest()
  }

  #endRequest(): void {
    if (this.#exchange !== undefined || this.#isInBody) return
    this.#beganAt = undefined
    this.#idleSince = performance.now()
  }

  /** Answers a request that cannot be read, unless its answer has begun, and ends the connection. */
  #refuse(fault: HttpFault): void {
    if (this.#isClosed) return
    // A second answer would be taken for that of the next request.
    if (this.#exchange === undefined && this.#isInBody) return this.#linger()
    const { hasAnswered = false } = this.#exchange ?? {}
    this.close()
    if (hasAnswered || !this.socket.writable) return void this.socket.destroy()
    const { status, headers, parts } = this.#handler.refusal(fault)
    const body = Buffer.concat(parts)
    const fields = `${formatFields(headers)}${formatDate()}connection: close\r\n`
    const head = `${formatStatus(status)}${fields}content-length: ${body.byteLength}\r\n\r\n`
    this.socket.write(Buffer.concat([Buffer.from(head, 'latin1'), body]))
    this.#linger()
  }

  /** Ends the connection behind what was written. What the client still sends is dropped: closed on it, the client might lose the answer. */
  #linger(): void {
    this.close()
    const { socket } = this
    socket.end()
    socket.resume()
    const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
    socket.once('close', () => clearTimeout(timer))
  }
}
