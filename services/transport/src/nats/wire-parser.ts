import { ServeError } from '@tutti/errors'
import { type Arrival, OWN_BYTES, PlacedReader } from '../sockets/placed-reader.ts'

/**
 * Asked when a message begins.
 *
 * @param head - its first bytes, HEAD_BYTES of them or all; valid during the call.
 * @param size - of the whole message, in bytes.
 * @returns undefined to drop the message.
 */
export type PlaceMessage = (head: Uint8Array, size: number, subject: string) => Arrival | undefined

/** What a broker says. */
export interface ParserListener {
  /** @param json - an object that the server wrote. */
  info(json: string): void
  ping(): void
  pong(): void
  /** `-ERR`, without its quotes. */
  refused(text: string): void
  /** @throws if there is no such subscription. */
  placeOf(sid: number): PlaceMessage
}

const CR = 13
const LF = 10

/** Reads the protocol of a NATS server: lines, and messages that a line announces. */
export class WireParser {
  /** Where the bytes go. */
  readonly reader: PlacedReader
  readonly #listener: ParserListener
  /** A message is over but for its end of line. */
  #isLineEndDue = false
  /** Bytes of one message; a larger one is an error. */
  maxPayload = 0

  constructor(listener: ParserListener) {
    this.#listener = listener
    this.reader = new PlacedReader(this)
  }

  /** As Grammar's. */
  read(own: Buffer, start: number, end: number): boolean {
    return this.#isLineEndDue ? this.#endMessage(own, start, end) : this.#line(own, start, end)
  }

  #endMessage(own: Buffer, start: number, end: number): boolean {
    if (end - start < 2) return false
    if (own[start] !== CR || own[start + 1] !== LF) {
      throw protocolError('a message is longer than it says')
    }
    this.#isLineEndDue = false
    this.reader.skip(2)
    return true
  }

  #line(own: Buffer, start: number, end: number): boolean {
    const at = own.subarray(0, end).indexOf(LF, start)
    if (at < 0) {
      if (end - start >= OWN_BYTES) throw protocolError('a line has no end')
      return false
    }
    if (own[at - 1] !== CR || at === start) throw protocolError('a line ends oddly')
    const line = own.toString('latin1', start, at - 1)
    this.reader.skip(at + 1 - start)
    // An INFO has names in UTF-8; all else is ASCII.
    if (line.startsWith('INFO ')) {
      this.#listener.info(own.toString('utf8', start + 'INFO '.length, at - 1))
    } else this.#said(line)
    return true
  }

  #said(line: string): void {
    if (line.startsWith('MSG ')) this.#announce(line)
    else if (line === 'PING') this.#listener.ping()
    else if (line === 'PONG') this.#listener.pong()
    else if (line.startsWith('-ERR ')) {
      this.#listener.refused(line.slice('-ERR '.length).replaceAll("'", ''))
    } else if (line !== '+OK') throw protocolError('a line is none of a NATS server')
  }

  /** `MSG subject sid [reply] size` */
  #announce(line: string): void {
    const [, subject = '', sid = '', ...rest] = line.split(' ')
    const text = rest.at(-1) ?? ''
    const isWhole = rest.length === 1 || rest.length === 2
    if (!isWhole || !DIGITS.test(sid) || !DIGITS.test(text)) {
      throw protocolError('a message has no size or subscription')
    }
    const size = Number(text)
    if (size > this.maxPayload) {
      throw protocolError(`a message has ${size} bytes, want at most ${this.maxPayload}`)
    }
    const place = this.#listener.placeOf(Number(sid))
    this.#isLineEndDue = true
    this.reader.announce(size, (head) => place(head, size, subject))
  }
}

const DIGITS = /^\d{1,15}$/

/** The other end does not speak as a NATS server does. */
export function protocolError(what: string): ServeError {
  const text = `what answers is no NATS server, or its bytes are damaged: ${what}`
  return new ServeError('MALFORMED_MESSAGE', text)
}
