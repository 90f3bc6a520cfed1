import { connect, type Socket } from 'node:net'

/*
 * The least that a NATS client can do for large messages: what is read lands in its place, what is written is not copied, memory is
 * used again. Without a check, a limit or an error: it shows what the broker and the sockets cost.
 */

const OWN_BYTES = 65_536
/** A shorter rest is read together with what follows it. */
const DIRECT_BYTES = 4096
const CRLF = Buffer.from('\r\n')

export interface WireMessage {
  readonly bytes: Uint8Array
  readonly reply: string
  /** Gives the memory back. */
  readonly release: () => void
}

/** A signed-in connection. */
export class RawWire {
  readonly #socket: Socket
  readonly #own = Buffer.allocUnsafeSlow(OWN_BYTES)
  readonly #take: (message: WireMessage) => void
  readonly #pool: Buffer[] = []
  /** Bytes of `#own` that are not understood. */
  #held = 0
  #into: Buffer | undefined
  #filled = 0
  #reply = ''
  #skip = 0
  #pong = (): void => {}

  constructor(url: string, take: (message: WireMessage) => void) {
    const { hostname, port } = new URL(url)
    this.#take = take
    this.#socket = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      onread: {
        buffer: () => this.#target(),
        callback: (size) => {
          this.#read(size)
          return true
        },
      },
    })
  }

  /** Signs in and subscribes. */
  open(subject: string): Promise<void> {
    const options = '{"verbose":false,"pedantic":false,"lang":"bench","version":"1","protocol":1}'
    this.#socket.write(`CONNECT ${options}\r\nSUB ${subject} 1\r\nPING\r\n`)
    return new Promise((resolve) => {
      this.#pong = resolve
    })
  }

  publish(subject: string, reply: string, bytes: Uint8Array, written?: () => void): void {
    const socket = this.#socket
    socket.cork()
    const to = reply === '' ? subject : `${subject} ${reply}`
    socket.write(Buffer.from(`PUB ${to} ${bytes.byteLength}\r\n`, 'latin1'))
    socket.write(bytes)
    socket.write(CRLF, written)
    socket.uncork()
  }

  #target(): Buffer {
    const isDirect = this.#into && this.#into.byteLength - this.#filled >= DIRECT_BYTES
    return this.#into && isDirect
      ? this.#into.subarray(this.#filled)
      : this.#own.subarray(this.#held)
  }

  #read(size: number): void {
    if (this.#into && this.#into.byteLength - this.#filled >= DIRECT_BYTES) {
      this.#fill(this.#into, size)
      return
    }
    const end = this.#held + size
    const at = this.#parse(end)
    this.#own.copyWithin(0, at, end)
    this.#held = end - at
  }

  /** @returns up to where it is understood. */
  #parse(end: number): number {
    let at = 0
    while (at < end) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, end - at)
        this.#skip -= skipped
        at += skipped
      } else if (this.#into) {
        const size = Math.min(this.#into.byteLength - this.#filled, end - at)
        this.#own.copy(this.#into, this.#filled, at, at + size)
        at += size
        this.#fill(this.#into, size)
      } else {
        const lineEnd = this.#own.subarray(0, end).indexOf('\n', at)
        if (lineEnd < 0) break
        this.#line(this.#own.toString('latin1', at, lineEnd - 1))
        at = lineEnd + 1
      }
    }
    return at
  }

  #line(line: string): void {
    if (line === 'PING') this.#socket.write('PONG\r\n')
    if (line === 'PONG') this.#pong()
    if (!line.startsWith('MSG ')) return
    const parts = line.split(' ')
    const size = Number(parts.at(-1))
    this.#reply = parts.length === 5 ? (parts[3] ?? '') : ''
    const kept = this.#pool.pop()
    this.#into = kept?.byteLength === size ? kept : Buffer.allocUnsafeSlow(size)
    this.#filled = 0
  }

  #fill(into: Buffer, size: number): void {
    this.#filled += size
    if (this.#filled < into.byteLength) return
    this.#into = undefined
    this.#skip = CRLF.byteLength
    const release = (): void => void this.#pool.push(into)
    this.#take({ bytes: into, reply: this.#reply, release })
  }
}
