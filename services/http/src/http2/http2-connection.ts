import { ConnectionError, ErrorCode } from './error-code.ts'
import { FrameBudget, type ResetBounds } from './frame-budget.ts'
import { FrameReader } from './frame-reader.ts'
import {
  DEFAULT_WINDOW_BYTES,
  Flag,
  type FrameHeader,
  goawayFrame,
  MAX_STREAM_ID,
  pingFrame,
  SETTINGS_ACK,
  Setting,
  settingsFrame,
  Type,
  windowUpdateFrame,
} from './frames.ts'
import { OpenBlock } from './header-reader.ts'
import { type ByteSink, Sender } from './sender.ts'
import { readSettings } from './settings.ts'
import type { ServerStream } from './stream.ts'
import { type StreamBounds, Streams } from './streams.ts'

/** Bounds on the resources that a connection may use. */
export interface Http2Bounds extends StreamBounds, ResetBounds {}

/** Handler for the events of a connection. */
export interface ConnectionHandler {
  /** Takes a new request. Must set `stream.handler` before it returns. */
  stream(stream: ServerStream): void
  /** Called when the client has pinged. The ping is answered without it. */
  pinged?(): void
}

export interface ConnectionOptions extends Http2Bounds {
  readonly sink: ByteSink
  readonly handler: ConnectionHandler
  /** Clock in milliseconds. */
  readonly now: () => number
}

const PRIORITY_BYTES = 5
const PING_BYTES = 8

/** The server's end of one HTTP/2 connection, without a socket. @see RFC 9113 */
export class Http2Connection {
  readonly #options: ConnectionOptions
  readonly #reader: FrameReader
  readonly #sender: Sender
  readonly #streams: Streams
  readonly #budget: FrameBudget
  /** The id of the last stream that the last GOAWAY named. */
  #lastServedId = MAX_STREAM_ID
  #hasSettings = false
  #isLeaving = false
  #isClosed = false
  #openBlock: OpenBlock | undefined
  readonly #pings: (() => void)[] = []

  constructor(o: ConnectionOptions) {
    this.#options = o
    const budget = (this.#budget = new FrameBudget(o, o.now))
    this.#sender = new Sender({
      sink: o.sink,
      onData: (bytes) => budget.earnBytes(bytes),
      onWhole: () => budget.earn(),
      onOverflow: () => this.destroy(),
    })
    this.#streams = new Streams({
      bounds: o,
      sender: this.#sender,
      budget,
      onStream: (stream) => o.handler.stream(stream),
      onIdle: () => this.#endIfIdle(),
    })
    this.#reader = new FrameReader({
      begin: (header) => this.#begin(header),
      frame: (header, payload) => this.#frame(header, payload),
      data: (piece) => this.#streams.data(piece),
      dataEnd: (header) => this.#streams.endData(header),
    })
    const settings = [
      [Setting.maxConcurrentStreams, o.maxConcurrentStreams],
      [Setting.initialWindowBytes, o.windowBytes],
      [Setting.maxHeaderListBytes, o.maxHeaderListBytes],
    ] as const
    this.#sender.control(settingsFrame(settings))
    const more = o.windowBytes - DEFAULT_WINDOW_BYTES
    if (more > 0) this.#sender.control(windowUpdateFrame(0, more))
  }

  /** True once the client has confirmed our settings, and so knows our bounds. */
  get isConfirmed(): boolean {
    return this.#streams.isConfirmed
  }

  /** True once the client has sent its preface and its settings. */
  get hasBegun(): boolean {
    return this.#hasSettings
  }

  /** True once the connection reads and sends nothing more. The socket may still hold unsent bytes. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  get streamCount(): number {
    return this.#streams.count
  }

  /** Id of the last stream that the client has opened. It grows with each new stream. */
  get lastStreamId(): number {
    return this.#streams.lastId
  }

  /** Takes bytes that the client has sent. A client that breaks the protocol gets GOAWAY, and the connection ends. */
  receive(chunk: Buffer): void {
    if (this.#isClosed) return
    try {
      this.#reader.receive(chunk)
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error
      this.#fail(error.code, error.message)
    }
  }

  /** Sends a ping. @param onAnswer - called when the client has answered; never, if it does not. */
  ping(onAnswer: () => void): void {
    if (this.#isClosed) return
    this.#pings.push(onAnswer)
    this.#sender.control(pingFrame(Buffer.alloc(PING_BYTES), false))
  }

  /** Tells the client to begin no more streams. New streams that it had sent by then are served until `stop`. */
  announceStop(): void {
    if (this.#isClosed || this.#streams.isStopping) return
    this.#sender.control(goawayFrame(MAX_STREAM_ID, ErrorCode.noError, ''))
  }

  /** Takes no more streams, and ends the connection when the last open stream has ended. */
  stop(code: ErrorCode = ErrorCode.noError, text = ''): void {
    if (this.#isClosed || this.#streams.isStopping) return
    this.#goaway(code, text)
    this.#endIfIdle()
  }

  /** Ends all streams at once, sends GOAWAY and ends the connection. */
  end(): void {
    this.#fail(ErrorCode.noError, '')
  }

  /** Ends all streams and destroys the socket, without a word to the client. */
  destroy(): void {
    this.close()
    this.#options.sink.destroy()
  }

  /** Ends all streams of a connection that is gone. Bytes that have not gone to the socket are lost. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#reader.stop()
    this.#streams.close()
    this.#sender.close()
  }

  #endIfIdle(): void {
    if (!this.#streams.isIdle || this.#isClosed) return
    if (!this.#streams.isStopping && !this.#isLeaving) return
    // No frame may go out behind the end, so no further one is answered.
    this.#reader.stop()
    this.#sender.finish()
  }

  #goaway(code: ErrorCode, text: string): void {
    this.#streams.isStopping = true
    this.#lastServedId = Math.min(this.#lastServedId, this.#streams.lastId)
    this.#sender.control(goawayFrame(this.#lastServedId, code, text))
  }

  /** Tells the client what it did wrong, and ends the connection. */
  #fail(code: ErrorCode, text: string): void {
    if (this.#isClosed) return
    this.#reader.stop()
    this.#goaway(code, text)
    this.#streams.close()
    this.#sender.finish()
    this.#options.sink.endSoon()
  }

  #begin(header: FrameHeader): void {
    const { type, flags, streamId } = header
    if (!this.#hasSettings && (type !== Type.settings || (flags & Flag.ack) !== 0)) {
      throw new ConnectionError(ErrorCode.protocolError, 'the first frame is not SETTINGS')
    }
    const open = this.#openBlock
    const isContinued = type === Type.continuation && streamId === open?.streamId
    if (open !== undefined && !isContinued) {
      throw new ConnectionError(ErrorCode.protocolError, 'a frame stands within a block of fields')
    }
    if (type !== Type.data) return
    requireStream(streamId)
    this.#streams.beginData(header)
  }

  #frame(header: FrameHeader, payload: Buffer): void {
    switch (header.type) {
      case Type.headers:
        return this.#onHeaders(header, payload)
      case Type.continuation:
        return this.#onContinuation(header, payload)
      case Type.resetStream:
        return this.#onReset(header)
      case Type.windowUpdate:
        return this.#onWindowUpdate(header, payload)
      case Type.settings:
        return this.#onSettings(header, payload)
      case Type.ping:
        return this.#onPing(header, payload)
      case Type.goaway:
        return this.#onGoaway(header)
      case Type.priority:
        return this.#onPriority(header, payload)
      case Type.pushPromise:
        throw new ConnectionError(ErrorCode.protocolError, 'a client cannot push')
      default:
        this.#budget.countUseless()
    }
  }

  #onHeaders({ flags, streamId }: FrameHeader, payload: Buffer): void {
    requireStream(streamId)
    let begin = 0
    let end = payload.byteLength
    if (flags & Flag.padded) {
      requireLength(end > 0)
      begin = 1
      end -= payload[0] ?? 0
    }
    if (flags & Flag.priority) {
      requireLength(payload.byteLength - begin >= PRIORITY_BYTES)
      requireOther(streamId, payload.readUInt32BE(begin))
      begin += PRIORITY_BYTES
    }
    if (end < begin) throw new ConnectionError(ErrorCode.protocolError, 'too much padding')
    const piece = payload.subarray(begin, end)
    const isEnd = (flags & Flag.endStream) !== 0
    if (flags & Flag.endHeaders) this.#streams.block(streamId, isEnd, piece)
    else this.#openBlock = new OpenBlock(streamId, isEnd, piece)
  }

  #onContinuation({ flags }: FrameHeader, payload: Buffer): void {
    const open = this.#openBlock
    if (open === undefined) {
      throw new ConnectionError(ErrorCode.protocolError, 'CONTINUATION continues nothing')
    }
    open.add(payload)
    if ((flags & Flag.endHeaders) === 0) return
    this.#openBlock = undefined
    this.#streams.block(open.streamId, open.isEnd, open.whole())
  }

  #onReset({ streamId, length }: FrameHeader): void {
    requireStream(streamId)
    requireLength(length === 4)
    this.#streams.reset(streamId)
  }

  #onWindowUpdate({ streamId, length }: FrameHeader, payload: Buffer): void {
    requireLength(length === 4)
    this.#budget.countUseless()
    const bytes = payload.readUInt32BE(0) & 0x7fffffff
    if (streamId > 0) return this.#streams.widen(streamId, bytes)
    if (bytes === 0) throw new ConnectionError(ErrorCode.protocolError, 'WINDOW_UPDATE by 0')
    this.#sender.widen(bytes)
  }

  #onSettings({ flags, streamId }: FrameHeader, payload: Buffer): void {
    requireConnection(streamId)
    if (flags & Flag.ack) {
      requireLength(payload.byteLength === 0)
      if (this.isConfirmed) this.#budget.countUseless()
      else this.#streams.confirm()
      return
    }
    this.#budget.countUseless()
    this.#hasSettings = true
    const { initialWindowBytes, maxFrameBytes } = readSettings(payload)
    if (maxFrameBytes !== undefined) this.#sender.maxFrameBytes = maxFrameBytes
    if (initialWindowBytes !== undefined) this.#streams.setInitialWindow(initialWindowBytes)
    this.#sender.control(SETTINGS_ACK)
  }

  #onPing({ flags, streamId, length }: FrameHeader, payload: Buffer): void {
    requireConnection(streamId)
    requireLength(length === PING_BYTES)
    if (flags & Flag.ack) return this.#onPong()
    this.#budget.countUseless()
    this.#sender.control(pingFrame(payload, true))
    this.#options.handler.pinged?.()
  }

  #onPong(): void {
    const answered = this.#pings.shift()
    if (answered === undefined) this.#budget.countUseless()
    else answered()
  }

  #onGoaway({ streamId, length }: FrameHeader): void {
    requireConnection(streamId)
    requireLength(length >= 8)
    this.#budget.countUseless()
    this.#isLeaving = true
    this.#endIfIdle()
  }

  #onPriority({ streamId, length }: FrameHeader, payload: Buffer): void {
    requireStream(streamId)
    requireLength(length === PRIORITY_BYTES)
    requireOther(streamId, payload.readUInt32BE(0))
    this.#budget.countUseless()
  }
}

function requireStream(streamId: number): void {
  if (streamId === 0) throw new ConnectionError(ErrorCode.protocolError, 'a frame without a stream')
}

function requireConnection(streamId: number): void {
  if (streamId === 0) return
  throw new ConnectionError(ErrorCode.protocolError, 'a frame of the connection on a stream')
}

function requireLength(isRight: boolean): void {
  if (!isRight) throw new ConnectionError(ErrorCode.frameSizeError, 'a frame of a wrong length')
}

/** @see RFC 7540, 5.3.1 */
function requireOther(streamId: number, dependency: number): void {
  if ((dependency & 0x7fffffff) !== streamId) return
  throw new ConnectionError(ErrorCode.protocolError, 'a stream depends on itself')
}
