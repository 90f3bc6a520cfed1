import type { Socket } from 'node:net'
import {
  type AnswerHead,
  formatDate,
  formatField,
  formatFields,
  formatStatus,
  isWithoutBody,
} from './answer-head.ts'
import type { RequestHead } from './request-head.ts'

/** Reader of the body of a request. */
export interface BodyReader {
  /** Takes a piece: a view that is valid during the call. */
  data(piece: Buffer): void
  /** Called once, behind the last piece. */
  end(): void
  /** Called in place of `end`, if the connection ends before. */
  left(): void
}

/** The connection, as its exchange uses it. */
export interface ExchangeConnection {
  readonly socket: Socket
  /** The fields of each answer that tell whether the connection stays, after this one. @param isLast - true: it does not. */
  endingFields(isLast: boolean): string
  /** Tells the client to send the body, if it waits for that. */
  askForBody(): void
  /** Stops or resumes reading, as the exchange says by `wantsPause`. */
  flow(): void
  /** Called once, when the exchange is over. */
  over(): void
  /** Ends the connection as it stands, and its exchange. */
  destroy(): void
}

/** Answers up to this go out as one string with their head, which costs less than a write of two pieces. */
const MAX_JOINED_BYTES = 8192

/** One request of a connection, and the one answer to it. */
export class Exchange {
  readonly head: RequestHead
  readonly #connection: ExchangeConnection
  #fields = ''
  #reader: BodyReader | undefined
  /** Pieces that came before there was a reader. */
  #early: Buffer[] = []
  #isPaused = false
  #isWhole = false
  #hasAnswered = false
  #isInChunks = false
  /** True for an answer that was begun and whose parts go out. */
  #hasParts = false
  #isGiven = false
  #isTaken = false
  #isOver = false
  readonly #whenOver: ((isAnswered: boolean) => void)[] = []

  constructor(head: RequestHead, connection: ExchangeConnection) {
    this.head = head
    this.#connection = connection
  }

  get socket(): Socket {
    return this.#connection.socket
  }

  /** True once the last byte of the body has come. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** True once the head of the answer has been given to the socket. */
  get hasAnswered(): boolean {
    return this.#hasAnswered
  }

  /** True once the whole answer has been given to the socket. */
  get isGiven(): boolean {
    return this.#isGiven
  }

  /** True once the system has taken the whole answer, or the connection has ended. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** True while the connection must not read on. */
  get wantsPause(): boolean {
    return !this.#isOver && (this.#isPaused || this.#early.length > 0)
  }

  /** Calls back when the exchange is over, with true if the system has taken the whole answer; at once if it is over already. */
  whenOver(callback: (isAnswered: boolean) => void): void {
    if (this.#isOver) callback(this.#isTaken)
    else this.#whenOver.push(callback)
  }

  /** Reads the body, from its beginning. Call it once. A body without a reader is dropped once the answer is out. */
  read(reader: BodyReader): void {
    this.#reader = reader
    if (this.#isOver) return reader.left()
    const early = this.#early
    this.#early = []
    for (const piece of early) reader.data(piece)
    if (this.#isWhole) reader.end()
    else if (!this.#hasAnswered) this.#connection.askForBody()
    this.#connection.flow()
  }

  /** Stops the pieces of the body for a while. */
  pause(): void {
    this.#isPaused = true
    this.#connection.flow()
  }

  resume(): void {
    this.#isPaused = false
    this.#connection.flow()
  }

  /** Adds a field to the answer. Has no effect once the head is out. @throws TypeError for text that is not of one line. */
  setHeader(name: string, value: string): void {
    this.#fields += formatField(name, value)
  }

  /**
   * Sends the whole answer.
   *
   * @param parts - are read until the exchange is over.
   * @param byteLength - of all parts.
   */
  answer(head: AnswerHead, parts: readonly Uint8Array[], byteLength: number): void {
    const { status } = head
    const length = isWithoutBody(status) ? '' : `content-length: ${byteLength}\r\n`
    const text = this.#headText(head, length, this.head.isLast)
    const { socket } = this.#connection
    const hasBody = this.#canHaveBody(status) && byteLength > 0
    const isJoined = !hasBody || byteLength <= MAX_JOINED_BYTES
    this.#isGiven = true
    if (isJoined) {
      // A character of latin1 is a byte.
      socket.write(hasBody ? text + parts.map(latin1Of).join('') : text, 'latin1', this.#sent)
    } else {
      socket.cork()
      socket.write(text, 'latin1')
      const filled = parts.filter((part) => part.byteLength > 0)
      const last = filled.pop()
      for (const part of filled) socket.write(part)
      if (last !== undefined) socket.write(last, this.#sent)
      socket.uncork()
    }
    // Most answers are taken at once. An error of the write shows here, before the socket is destroyed for it.
    const isTaken = socket.writableLength === 0 && socket.errored === null && !socket.destroyed
    if (isTaken) this.#end(true)
  }

  /** Begins an answer whose length is not known. */
  begin(head: AnswerHead): void {
    const { isHttp10, isLast } = this.head
    this.#hasParts = this.#canHaveBody(head.status)
    this.#isInChunks = this.#hasParts && !isHttp10
    const coding = this.#isInChunks ? 'transfer-encoding: chunked\r\n' : ''
    // For HTTP/1.0 the end of the connection is the end of the answer.
    const text = this.#headText(head, coding, isLast || (this.#hasParts && isHttp10))
    this.#connection.socket.write(text, 'latin1')
  }

  /** Sends parts of the answer that was begun. Resolves when the system has taken them; never, if the connection ends before. */
  async write(parts: readonly Uint8Array[]): Promise<void> {
    const { socket } = this.#connection
    const byteLength = parts.reduce((sum, part) => sum + part.byteLength, 0)
    // An empty chunk would end the answer.
    if (byteLength === 0 || !this.#hasParts) return
    const { promise, resolve } = Promise.withResolvers<void>()
    socket.cork()
    if (this.#isInChunks) socket.write(`${byteLength.toString(16)}\r\n`, 'latin1')
    for (const part of parts) if (part.byteLength > 0) socket.write(part)
    socket.write(this.#isInChunks ? '\r\n' : '', 'latin1', (error) => {
      if (error === null || error === undefined) resolve()
    })
    socket.uncork()
    await promise
  }

  /** Ends the answer that was begun, unless the exchange is over. */
  end(): void {
    if (this.#isOver) return
    this.#isGiven = true
    this.#connection.socket.write(this.#isInChunks ? '0\r\n\r\n' : '', 'latin1', this.#sent)
  }

  /** Ends the connection, answered or not, unless the exchange is over: the connection may serve another by then. */
  destroy(): void {
    if (!this.#isOver) this.#connection.destroy()
  }

  /** Takes a piece of the body from the connection: a view that is valid during the call. */
  take(piece: Buffer): void {
    if (this.#reader !== undefined) this.#reader.data(piece)
    else if (!this.#hasAnswered) this.#early.push(Buffer.from(piece))
  }

  /** Takes the end of the body from the connection. */
  takeEnd(): void {
    this.#isWhole = true
    if (this.#early.length === 0) this.#reader?.end()
  }

  /** Takes the end of the connection. */
  close(): void {
    this.#end(false)
  }

  #canHaveBody(status: number): boolean {
    return this.head.method !== 'HEAD' && !isWithoutBody(status)
  }

  #headText({ status, headers }: AnswerHead, framing: string, isLast: boolean): string {
    const text = `${formatStatus(status)}${this.#fields}${formatFields(headers)}`
    this.#hasAnswered = true
    // A handler that answers before it reads the body does not read it.
    this.#early = []
    return `${text}${formatDate()}${this.#connection.endingFields(isLast)}${framing}\r\n`
  }

  readonly #sent = (error?: Error | null): void => {
    if (error === null || error === undefined) this.#end(true)
  }

  #end(isAnswered: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#isTaken = isAnswered
    this.#early = []
    if (!this.#isWhole) this.#reader?.left()
    for (const callback of this.#whenOver) callback(isAnswered)
    this.#connection.over()
  }
}

function latin1Of({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('latin1')
}
