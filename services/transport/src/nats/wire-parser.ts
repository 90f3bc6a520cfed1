import { ServeError } from '@tutti/errors'
import { type Arrival, OWN_BYTES, PlacedReader } from '../sockets/placed-reader.ts'

/** The announcement of a message by the broker, before its bytes come. */
export interface ComingMessage {
  readonly subject: string
  /** Subject for the answer, if one is expected. */
  readonly reply: string | undefined
  /** Bytes of the whole message, without headers. */
  readonly size: number
  /** True if it is the broker's word that a message of ours, with this subject for the answer, had no responder. */
  readonly isNoResponder: boolean
}

/**
 * Finds the place of a message when it begins to come.
 *
 * @param head - its first bytes, HEAD_BYTES or all that stand there; valid during the call.
 * @returns undefined to drop the message.
 */
export type PlaceMessage = (head: Uint8Array, message: ComingMessage) => Arrival | undefined

/** The receiver of what a broker says. */
export interface ParserListener {
  /** Called with INFO. @param json - an object that the server wrote. */
  info(json: string): void
  ping(): void
  pong(): void
  /** Called with the text of `-ERR`, without its quotes. */
  refused(text: string): void
  /** Finds the PlaceMessage of a subscription. @throws an error if there is no such subscription. */
  placeOf(sid: number): PlaceMessage
}

const CR = 13
const LF = 10

/** Reads the protocol of a NATS server: lines, and messages that a line announces. */
export class WireParser {
  /** Reader of the socket's bytes. */
  readonly reader: PlacedReader
  readonly #listener: ParserListener
  /** A message is over but for its end of line. */
  #isLineEndDue = false
  /** Bytes of one message; a larger one is an error. */
  maxPayload = 0

  /** @param readBytes - that are read at once where no message is on its way to its place. */
  constructor(listener: ParserListener, readBytes: number) {
    this.#listener = listener
    this.reader = new PlacedReader(this, readBytes)
  }

  /** Reads bytes, see Grammar. */
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
    const line = own.toString('utf8', start, at - 1)
    this.reader.skip(at + 1 - start)
    this.#said(line)
    return true
  }

  #said(line: string): void {
    if (line.startsWith('MSG ')) this.#announce(line.split(' '), 0)
    else if (line.startsWith('HMSG ')) this.#announceHeaders(line.split(' '))
    else if (line.startsWith('INFO ')) this.#listener.info(line.slice('INFO '.length))
    else if (line === 'PING') this.#listener.ping()
    else if (line === 'PONG') this.#listener.pong()
    else if (line.startsWith('-ERR ')) {
      this.#listener.refused(line.slice('-ERR '.length).replaceAll("'", ''))
    } else if (line !== '+OK') throw protocolError('a line is none of a NATS server')
  }

  /** Reads `HMSG subject sid [reply] headers size`; the size is that of headers and payload. */
  #announceHeaders(words: string[]): void {
    const [text = ''] = words.splice(-2, 1)
    if (!DIGITS.test(text)) throw protocolError('a message has no size of its headers')
    this.#announce(words, Number(text))
  }

  /** Reads `MSG subject sid [reply] size`. @param headerBytes - part of the size. */
  #announce([, subject = '', sid = '', ...rest]: readonly string[], headerBytes: number): void {
    const text = rest.at(-1) ?? ''
    const isWhole = rest.length === 1 || rest.length === 2
    if (!isWhole || !DIGITS.test(sid) || !DIGITS.test(text)) {
      throw protocolError('a message has no size or subscription')
    }
    const total = Number(text)
    const size = total - headerBytes
    if (total > this.maxPayload || size < 0) {
      throw protocolError(`a message has ${total} bytes, want ${headerBytes} to ${this.maxPayload}`)
    }
    const place = this.#listener.placeOf(Number(sid))
    const reply = rest.length === 2 ? rest[0] : undefined
    this.#isLineEndDue = true
    this.reader.announce(total, (head) => {
      // Headers that no member sends may be longer than what is seen of a message.
      if (headerBytes > head.byteLength) return undefined
      const isNoResponder = size === 0 && NO_RESPONDER.every((byte, i) => head[i] === byte)
      return place(head.subarray(headerBytes), { subject, reply, size, isNoResponder })
    })
  }
}

const NO_RESPONDER = Buffer.from('NATS/1.0 503')
const DIGITS = /^\d{1,15}$/

/** Makes the error for an other end that does not speak as a NATS server does. */
export function protocolError(what: string): ServeError {
  const text = `what answers is no NATS server, or its bytes are damaged: ${what}`
  return new ServeError('MALFORMED_MESSAGE', text)
}
