import type { Socket } from 'node:net'
import type { LinkSettings } from '../endpoint-settings.ts'
import { MessageSocket, type ReadInto } from '../sockets/message-socket.ts'
import type { Arrival, Place } from '../sockets/placed-reader.ts'
import { encodeFrameHead, type FrameKind, FrameParser, frameError } from './direct-frames.ts'
import { HANDSHAKE_BYTES, type Handshake } from './direct-handshake.ts'

/** The receiver of what comes over a connection, from the member that has proven who it is. Nothing here may throw. */
export interface DirectListener {
  opened(connection: DirectConnection, member: string): void
  message(member: string, bytes: Uint8Array): void
  /** Finds the memory for a chunk, as PlaceMessage does for a message. */
  place(member: string, head: Uint8Array, size: number): Arrival | undefined
  /** Called once when the connection is over. @param why - undefined if it was closed without an error. */
  ended(connection: DirectConnection, why: unknown): void
}

/** The options of a connection. */
export interface DirectConnectionContext {
  readonly open: (onread: ReadInto) => Socket
  readonly handshake: Handshake
  /** Milliseconds for the handshake. */
  readonly handshakeMs: number
  readonly times: LinkSettings
  /** Bytes of the largest message or chunk that may come. */
  readonly maxPayload: () => number
  readonly listener: DirectListener
}

/**
 * A connection between two members. Before both have proven who they are, it takes a few short frames and nothing else, for a short
 * time. Without a clock: time comes with `tick`.
 */
export class DirectConnection {
  readonly #context: DirectConnectionContext
  readonly #socket: MessageSocket
  /** Member that the other end has proven to be. */
  #member: string | undefined
  #hasEnded = false
  #isEnding = false
  /** The other end has said its last. */
  #hasLeft = false
  /** Time of the first tick. */
  #since: number | undefined
  #sent = { bytes: -1, at: 0 }
  #taken = { bytes: -1, at: 0 }
  #read = { bytes: -1, at: -1 }
  #wasSilent = false

  constructor(o: DirectConnectionContext) {
    this.#context = o
    const parser = new FrameParser((kind, size) => this.#placeOf(kind, size))
    this.#socket = new MessageSocket({
      open: o.open,
      reader: parser.reader,
      ended: (why) => {
        this.#hasEnded = true
        o.listener.ended(this, why)
      },
    })
    const { first } = o.handshake
    if (first !== undefined) this.#write('handshake', [first])
  }

  get member(): string | undefined {
    return this.#member
  }

  /** True if the other end will read what is sent now. */
  get isOpen(): boolean {
    return this.#member !== undefined && !this.#hasEnded && !this.#isEnding && !this.#hasLeft
  }

  /** True if all that the other end said is here. A connection that a host between them closes can end without an error too. */
  get hasLeft(): boolean {
    return this.#hasLeft
  }

  /** Time of the last tick that found bytes of the other end; -1 before. */
  get readAt(): number {
    return this.#read.at
  }

  /** Bytes that wait to be sent. */
  get queuedBytes(): number {
    return this.#socket.queuedBytes
  }

  /** Sends a message. @param bytes - not changed from now on. */
  sendMessage(bytes: Uint8Array): void {
    this.#write('message', [bytes])
  }

  /** Sends a chunk. @param bytes - viewed until `written` is called. */
  sendChunk(head: Uint8Array, bytes: Uint8Array, written: (() => void) | undefined): void {
    this.#write('chunk', [head, bytes], written)
  }

  /** Says that this end is there, and ends the connection if the other end has been silent. @param now - ListenedTime's. */
  tick(now: number): void {
    if (this.#hasEnded) return
    this.#since ??= now
    if (this.#member === undefined) this.#awaitHandshake(now - this.#since)
    else this.#look(now)
  }

  #awaitHandshake(waitedMs: number): void {
    const { handshakeMs } = this.#context
    if (waitedMs >= handshakeMs) this.destroy(`no handshake within ${handshakeMs} ms`)
  }

  #look(now: number): void {
    const { heartbeatMs, deadAfterMs, dataDeadMs } = this.#context.times
    const { bytesRead, sentBytes, queuedBytes } = this.#socket
    if (this.#read.bytes !== bytesRead) this.#read = { bytes: bytesRead, at: now }
    const takenBytes = sentBytes - queuedBytes
    if (queuedBytes === 0 || this.#taken.bytes !== takenBytes) {
      this.#taken = { bytes: takenBytes, at: now }
    }
    // Timers fire before sockets are read: on a busy machine what was said may lie unread, but not until the next tick.
    const wasSilent = this.#wasSilent
    this.#wasSilent = now - this.#read.at >= deadAfterMs
    if (wasSilent && this.#wasSilent) this.destroy(`silent for ${deadAfterMs} ms`)
    else if (now - this.#taken.at >= dataDeadMs) this.destroy(`took nothing for ${dataDeadMs} ms`)
    else if (this.#sent.bytes !== sentBytes) this.#sent = { bytes: sentBytes, at: now }
    else if (now - this.#sent.at >= heartbeatMs) this.#write('alive', [])
  }

  /** Sends what is written, then closes: the other end has taken all of it when the connection is over. */
  end(): void {
    this.#write('last', [])
    this.#isEnding = true
    this.#socket.end()
  }

  destroy(why: string): void {
    this.#socket.destroy(new Error(why))
  }

  #write(kind: FrameKind, parts: readonly Uint8Array[], written?: () => void): void {
    const size = parts.reduce((sum, part) => sum + part.byteLength, 0)
    const all = [encodeFrameHead(kind, size), ...parts]
    const last = all.pop()
    for (const part of all) this.#socket.write(part)
    if (last !== undefined) this.#socket.write(last, written)
  }

  #placeOf(kind: FrameKind, size: number): Place {
    const member = this.#member
    const { listener, maxPayload } = this.#context
    if (kind === 'handshake') {
      if (member !== undefined) throw frameError('of the handshake after it')
      if (size > HANDSHAKE_BYTES) throw frameError(`of ${size} bytes in the handshake`)
      return whole(size, (bytes) => this.#shake(bytes))
    }
    if (member === undefined) throw frameError('before the handshake')
    if (kind === 'alive' || kind === 'last') {
      this.#hasLeft ||= kind === 'last'
      if (size > 0) throw frameError(`of ${size} bytes, want none in '${kind}'`)
      return () => undefined
    }
    if (size > maxPayload()) throw frameError(`of ${size} bytes, want at most ${maxPayload()}`)
    if (kind === 'chunk') return (head) => listener.place(member, head, size)
    return whole(size, (bytes) => listener.message(member, bytes))
  }

  #shake(bytes: Uint8Array): void {
    const { reply, member } = this.#context.handshake.take(bytes)
    if (reply !== undefined) this.#write('handshake', [reply])
    if (member === undefined) return
    this.#member = member
    this.#context.listener.opened(this, member)
  }
}

/** Makes a place that puts all bytes of a frame together. */
function whole(size: number, take: (bytes: Uint8Array) => void): Place {
  return () => {
    const into = Buffer.allocUnsafe(size)
    return { into, arrived: () => take(into) }
  }
}
