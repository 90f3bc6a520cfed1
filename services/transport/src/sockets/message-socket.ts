import { Socket, type SocketConstructorOpts } from 'node:net'
import { bug } from '@tutti/errors'
import type { PlacedReader } from './placed-reader.ts'

/** The memory that a socket reads into, as `node:net` takes it: see `onread` of its `connect`. */
export interface ReadInto {
  readonly buffer: () => Uint8Array
  readonly callback: (size: number) => boolean
}

/** The options of a socket. */
export interface MessageSocketContext {
  /** Opens the socket. It reads into `onread`'s memory; if it cannot, its bytes come as `data` events. */
  readonly open: (onread: ReadInto) => Socket
  readonly reader: PlacedReader
  /** Called once, with what ended it; undefined if the other end closed it in order. */
  readonly ended: (why: unknown) => void
}

/**
 * A socket of messages. What comes is read to where the reader wants it, what goes is written without being copied, all of one turn
 * together. With TLS the library decrypts into memory of its own, from which the reader copies once.
 */
export class MessageSocket {
  readonly #context: MessageSocketContext
  #socket: Socket
  #isCorked = false
  #hasEnded = false
  readonly #onClose = (): void => this.#end(undefined)

  constructor(o: MessageSocketContext) {
    this.#context = o
    const { reader, open } = o
    const read = (size: number): boolean => {
      this.#try(() => reader.took(size))
      return true
    }
    this.#socket = open({ buffer: () => reader.target(), callback: read })
    this.#watch(this.#socket)
    this.#readData()
  }

  /** Bytes that came, before they were decrypted or after. */
  get bytesRead(): number {
    return this.#socket.bytesRead
  }

  /** Bytes that were written, `queuedBytes` among them. */
  get sentBytes(): number {
    return this.#socket.bytesWritten
  }

  /** Bytes that the other end has not taken. */
  get queuedBytes(): number {
    return this.#socket.writableLength
  }

  /** Encrypts from now on: goes on over a TLS socket around this one. @param wrap - makes that socket, and calls `ready` when it can be used. */
  startTls(wrap: (plain: Socket, ready: () => void) => Socket, ready: () => void): void {
    const plain = this.#socket
    // Its errors are those below TLS; its close comes before the reason for it.
    plain.off('close', this.#onClose)
    this.#socket = wrap(plain, () => this.#try(ready))
    this.#watch(this.#socket)
    this.#readData()
  }

  /** Writes bytes without copying them. @param bytes - viewed until `written`, which is called in any case. */
  write(bytes: Uint8Array, written?: () => void): void {
    this.#cork()
    this.#socket.write(bytes, written)
  }

  /** Sends what is written, then closes; the other end sees all of it first. */
  end(): void {
    this.#socket.end()
  }

  /** Ends the socket at once. @param why - reason that `ended` gets. */
  destroy(why?: Error): void {
    this.#socket.destroy(why)
  }

  /** Does nothing where `onread` takes what comes. */
  #readData(): void {
    this.#socket.on('data', (bytes) => this.#try(() => this.#context.reader.take(bytes)))
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
    this.#context.ended(why)
  }
}

/**
 * The socket of a server, reading as one of a client can: `node:net` offers `onread` to clients alone, so the handle goes into a
 * socket that has it.
 *
 * @param accepted - by a server with `pauseOnConnect`: it has read nothing.
 */
export function readingInto(accepted: Socket, onread: ReadInto): Socket {
  const handle: unknown = Reflect.get(accepted, '_handle')
  if (typeof handle !== 'object' || handle === null) throw bug('a connection has no handle')
  Reflect.set(accepted, '_handle', null)
  accepted.destroy()
  const options: SocketConstructorOpts = { onread }
  Reflect.set(options, 'handle', handle)
  const socket = new Socket(options)
  socket.setNoDelay(true)
  return socket
}
