import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions as TlsOptions } from 'node:tls'
import type { WireParser } from './wire-parser.ts'

const CRLF = Buffer.from('\r\n')

/** Where a broker listens. */
export interface WireAddress {
  readonly host: string
  readonly port: number
}

/** What a socket is opened with. */
export interface WireSocketOptions {
  readonly address: WireAddress
  readonly parser: WireParser
  /** Called once, with what ended it; undefined if the other end closed it in order. */
  readonly ended: (why: unknown) => void
}

/**
 * The socket under a wire client. What comes is read to where the parser wants it, what goes is written without being copied,
 * all of one turn together. With TLS the library decrypts into memory of its own, from which the parser copies once.
 */
export class WireSocket {
  readonly #o: WireSocketOptions
  #socket: Socket
  #isCorked = false
  #hasEnded = false
  readonly #onClose = (): void => this.#end(undefined)

  constructor(o: WireSocketOptions) {
    this.#o = o
    const { parser, address } = o
    const read = (size: number): boolean => {
      this.#try(() => parser.took(size))
      return true
    }
    const onread = { buffer: () => parser.target(), callback: read }
    this.#socket = connect({ ...address, noDelay: true, onread })
    this.#watch(this.#socket)
  }

  /** Goes on encrypted. @param done - when it is. */
  startTls(options: TlsOptions, done: () => void): void {
    const plain = this.#socket
    // Its errors are those below TLS; its close comes before the reason for it.
    plain.off('close', this.#onClose)
    const { host } = this.#o.address
    const servername = isIP(host) === 0 ? { servername: host } : {}
    const tls = { ...options, ...servername, host, socket: plain }
    const socket = connectTls(tls, () => this.#try(done))
    this.#socket = socket
    this.#watch(socket)
    socket.on('data', (bytes) => this.#try(() => this.#o.parser.take(bytes)))
  }

  /** @param bytes - viewed until `written`, which is called in any case. */
  write(bytes: Uint8Array, written?: () => void): void {
    this.#cork()
    this.#socket.write(bytes, written)
  }

  writeLine(line: string): void {
    this.write(Buffer.from(`${line}\r\n`, 'latin1'))
  }

  /** Writes a line and the message that it announces. */
  writeMessage(line: string, parts: readonly Uint8Array[], written?: () => void): void {
    this.writeLine(line)
    for (const part of parts) this.write(part)
    this.write(CRLF, written)
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #cork(): void {
    if (this.#isCorked) return
    this.#isCorked = true
    const socket = this.#socket
    socket.cork()
    process.nextTick(() => {
      this.#isCorked = false
      socket.uncork()
    })
  }

  #watch(socket: Socket): void {
    socket.on('error', (error) => this.#end(error))
    socket.on('close', this.#onClose)
  }

  #try(act: () => void): void {
    if (this.#hasEnded) return
    try {
      act()
    } catch (error) {
      this.#end(error)
    }
  }

  #end(why: unknown): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#socket.destroy()
    this.#o.ended(why)
  }
}
