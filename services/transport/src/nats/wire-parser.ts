import { bug, ServeError } from '@tutti/errors'

/** Where the bytes of a message that is arriving go. */
export interface Arrival {
  /** The last bytes of the message, as many as fit; nothing else writes there until `arrived`. */
  readonly into: Uint8Array
  /** They are all there. Not called if the connection ends before. */
  readonly arrived: () => void
}

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

/** The bytes of a message that are seen before its place is asked for. */
export const HEAD_BYTES = 512
/** The longest line, that is INFO with the addresses of a large cluster. */
const LINE_BYTES = 64 * 1024
/** What is read at once where a line or a head is expected: every byte of a payload beyond it is not copied. */
const READ_BYTES = 4096
/** A rest of a message that is shorter is read together with what follows it. */
const DIRECT_BYTES = 4096
const CR = 13
const LF = 10

interface Announced {
  readonly place: PlaceMessage
  readonly subject: string
  readonly size: number
}

/**
 * Reads the protocol of a NATS server from whatever pieces its bytes come in. It says where the next bytes should be read to:
 * lines into memory of its own, a message straight to its place.
 */
export class WireParser {
  readonly #listener: ParserListener
  readonly #own = Buffer.allocUnsafeSlow(LINE_BYTES)
  /** What of `#own` has been read and not understood. */
  #start = 0
  #end = 0
  /** A message whose head is not there. */
  #announced: Announced | undefined
  #arrival: Arrival | undefined
  /** Bytes that are in `#arrival`. */
  #filled = 0
  /** Bytes of a dropped message that are still to come. */
  #dropped = 0
  /** A message is over but for its end of line. */
  #isLineEndDue = false
  #isDirect = false
  /** Bytes of one message; a larger one is an error. */
  maxPayload = 0

  constructor(listener: ParserListener) {
    this.#listener = listener
  }

  /** True if nothing is read that is not understood. */
  get isEmpty(): boolean {
    return this.#start === this.#end
  }

  /** Where the next bytes go; at least one. */
  target(): Uint8Array {
    const arrival = this.#arrival
    this.#isDirect = arrival !== undefined && arrival.into.byteLength - this.#filled >= DIRECT_BYTES
    if (arrival !== undefined && this.#isDirect) return arrival.into.subarray(this.#filled)
    if (this.#start > 0) this.#own.copyWithin(0, this.#start, this.#end)
    this.#end -= this.#start
    this.#start = 0
    const most = this.#dropped > READ_BYTES ? LINE_BYTES : this.#end + READ_BYTES
    return this.#own.subarray(this.#end, Math.min(most, LINE_BYTES))
  }

  /** `size` bytes are in the last target. @throws an error if they are not the protocol; then the connection is of no use. */
  took(size: number): void {
    if (this.#isDirect) this.#fill(size)
    else {
      this.#end += size
      this.#parse()
    }
  }

  /** Reads bytes that are elsewhere. @throws as `took`. */
  take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.byteLength; ) {
      const target = this.target()
      const size = Math.min(target.byteLength, bytes.byteLength - at)
      target.set(bytes.subarray(at, at + size))
      at += size
      this.took(size)
    }
  }

  #parse(): void {
    while (this.#start < this.#end && this.#step());
  }

  /** @returns false if more bytes are needed. */
  #step(): boolean {
    const left = this.#end - this.#start
    if (this.#dropped > 0) {
      const size = Math.min(this.#dropped, left)
      this.#start += size
      this.#dropped -= size
      return true
    }
    if (this.#arrival !== undefined) {
      const { into } = this.#arrival
      const size = Math.min(into.byteLength - this.#filled, left)
      into.set(this.#own.subarray(this.#start, this.#start + size), this.#filled)
      this.#start += size
      this.#fill(size)
      return true
    }
    if (this.#announced !== undefined) return this.#begin(this.#announced, left)
    return this.#isLineEndDue ? this.#endMessage(left) : this.#line()
  }

  #begin({ place, subject, size }: Announced, left: number): boolean {
    const headBytes = Math.min(size, HEAD_BYTES)
    if (left < headBytes) return false
    const head = this.#own.subarray(this.#start, this.#start + headBytes)
    this.#announced = undefined
    this.#isLineEndDue = true
    const arrival = place(head, size, subject)
    if (arrival === undefined) {
      this.#dropped = size
      return true
    }
    const skipped = size - arrival.into.byteLength
    if (skipped < 0 || skipped > headBytes) throw bug(`a message of ${size} bytes is misplaced`)
    this.#start += skipped
    this.#arrival = arrival
    this.#filled = 0
    if (arrival.into.byteLength === 0) this.#fill(0)
    return true
  }

  #fill(size: number): void {
    const arrival = this.#arrival
    this.#filled += size
    if (arrival === undefined || this.#filled < arrival.into.byteLength) return
    this.#arrival = undefined
    this.#isDirect = false
    arrival.arrived()
  }

  #endMessage(left: number): boolean {
    if (left < 2) return false
    const isEnd = this.#own[this.#start] === CR && this.#own[this.#start + 1] === LF
    if (!isEnd) throw protocolError('a message is longer than it says')
    this.#start += 2
    this.#isLineEndDue = false
    return true
  }

  #line(): boolean {
    const end = this.#own.subarray(0, this.#end).indexOf(LF, this.#start)
    if (end < 0) {
      if (this.#end - this.#start >= LINE_BYTES) throw protocolError('a line has no end')
      return false
    }
    if (this.#own[end - 1] !== CR || end === this.#start) throw protocolError('a line ends oddly')
    const line = this.#own.toString('latin1', this.#start, end - 1)
    // An INFO has names in UTF-8; all else is ASCII.
    if (line.startsWith('INFO ')) {
      const json = this.#own.toString('utf8', this.#start + 'INFO '.length, end - 1)
      this.#start = end + 1
      this.#listener.info(json)
      return true
    }
    this.#start = end + 1
    this.#said(line)
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
    const size = rest.at(-1) ?? ''
    const isWhole = rest.length === 1 || rest.length === 2
    if (!isWhole || !DIGITS.test(sid) || !DIGITS.test(size)) {
      throw protocolError('a message has no size or subscription')
    }
    const bytes = Number(size)
    if (bytes > this.maxPayload) {
      throw protocolError(`a message has ${bytes} bytes, want at most ${this.maxPayload}`)
    }
    this.#announced = { place: this.#listener.placeOf(Number(sid)), subject, size: bytes }
    if (bytes === 0) this.#begin(this.#announced, 0)
  }
}

const DIGITS = /^\d{1,15}$/

/** The other end does not speak as a NATS server does. */
export function protocolError(what: string): ServeError {
  const text = `what answers is no NATS server, or its bytes are damaged: ${what}`
  return new ServeError('MALFORMED_MESSAGE', text)
}
