import { ClosedStreams } from './closed-streams.ts'
import { ConnectionError, ErrorCode } from './error-code.ts'
import type { FrameBudget } from './frame-budget.ts'
import { DEFAULT_WINDOW_BYTES, Flag, type FrameHeader, windowUpdateFrame } from './frames.ts'
import { HeaderReader, MAX_LIST_BYTES, type ReadHeaders } from './header-reader.ts'
import { OpenStreams } from './open-streams.ts'
import { contentLength } from './request-headers.ts'
import type { Sender } from './sender.ts'
import { ServerStream, type StreamOwner } from './stream.ts'

/** Bounds on the resources that the streams of a connection may use. */
export interface StreamBounds {
  /** Bytes that a client may send before they are read, for each stream and for the connection. */
  readonly windowBytes: number
  readonly maxConcurrentStreams: number
  /** Most bytes of the headers of one request. A client that has not confirmed our settings may send up to 64 KiB. */
  readonly maxHeaderListBytes: number
}

export interface StreamsOptions {
  readonly bounds: StreamBounds
  readonly sender: Sender
  readonly budget: FrameBudget
  /** Called when a request has begun. */
  readonly onStream: (stream: ServerStream) => void
  /** Called when no stream is open and no last frame waits for the socket. */
  readonly onIdle: () => void
}

/** Streams of one connection. It keeps the open ones and applies frames to them. */
export class Streams implements StreamOwner {
  readonly #options: StreamsOptions
  readonly #headers = new HeaderReader()
  readonly #open = new OpenStreams()
  readonly #over = new ClosedStreams()
  /** Streams that are open, or whose last frames wait for the socket. */
  #places = 0
  #lastId = 0
  #isConfirmed = false
  #receiveWindow: number
  #unreturnedBytes = 0
  #initialSendWindow = DEFAULT_WINDOW_BYTES
  /** The one whose frame of DATA is being read. */
  #dataStream: ServerStream | undefined
  /** True once new streams are refused. */
  isStopping = false

  constructor(o: StreamsOptions) {
    this.#options = o
    this.#receiveWindow = this.#initialReceiveWindow
  }

  get sender(): Sender {
    return this.#options.sender
  }

  get windowBytes(): number {
    return this.#options.bounds.windowBytes
  }

  /** True once the client has confirmed our settings, and so knows our bounds. */
  get isConfirmed(): boolean {
    return this.#isConfirmed
  }

  get count(): number {
    return this.#open.size
  }

  get isIdle(): boolean {
    return this.#places === 0
  }

  /** Id of the last stream that the client has opened. */
  get lastId(): number {
    return this.#lastId
  }

  /** Ends all open streams. */
  close(): void {
    for (const stream of this.#open) stream.close()
  }

  /**
   * Notes that the client has confirmed our settings. From now on our own window holds; before, the client could use the
   * standard's.
   */
  confirm(): void {
    const before = this.#initialReceiveWindow
    this.#isConfirmed = true
    const less = before - this.#initialReceiveWindow
    for (const stream of this.#open) stream.receiveWindow -= less
  }

  /**
   * Sets the initial send window of the client's settings, also for open streams.
   *
   * @throws ConnectionError FLOW_CONTROL_ERROR, ENHANCE_YOUR_CALM
   */
  setInitialWindow(bytes: number): void {
    const more = bytes - this.#initialSendWindow
    if (more === 0) return
    this.#options.budget.countMoved(this.#open.size)
    this.#initialSendWindow = bytes
    for (const stream of this.#open) {
      if (this.sender.widenStream(stream, more)) continue
      throw new ConnectionError(ErrorCode.flowControlError, 'a window becomes too large')
    }
  }

  /** Takes a whole block of fields: a request or its trailers. @throws ConnectionError */
  block(streamId: number, isEnd: boolean, block: Buffer): void {
    const stream = this.#open.find(streamId)
    if (stream !== undefined) this.#onTrailers(stream, isEnd, block)
    else if (streamId <= this.#lastId) this.#onLateBlock(streamId, block)
    else this.#onRequest(streamId, isEnd, block)
  }

  /** Begins a DATA frame. Its length with padding counts in the windows. @throws ConnectionError */
  beginData({ flags, streamId, length }: FrameHeader): void {
    const { budget } = this.#options
    this.#requireOpened(streamId)
    if (length > this.#receiveWindow) {
      throw new ConnectionError(ErrorCode.flowControlError, 'more bytes than the window allows')
    }
    this.#receiveWindow -= length
    this.#returnWindow(length)
    if (length > 0) budget.earnBytes(length)
    else if ((flags & Flag.endStream) === 0) budget.countUseless()
    const stream = this.#open.find(streamId)
    this.#dataStream = stream
    if (stream === undefined) this.#onLateData(streamId)
    else if (stream.hasEnded) this.#resetFor(stream, ErrorCode.streamClosed)
    else if (length > stream.receiveWindow) this.#resetFor(stream, ErrorCode.flowControlError)
    else stream.received(length)
  }

  /** Takes a piece of the body from the DATA frame that was begun. */
  data(piece: Buffer): void {
    const stream = this.#dataStream
    if (stream === undefined || stream.isOver) return
    if (stream.bodyLeft !== undefined) {
      stream.bodyLeft -= piece.byteLength
      if (stream.bodyLeft < 0) return this.#resetFor(stream, ErrorCode.protocolError)
    }
    stream.handler?.data(piece)
  }

  endData({ flags }: FrameHeader): void {
    const stream = this.#dataStream
    this.#dataStream = undefined
    if (stream !== undefined && !stream.isOver && flags & Flag.endStream) this.#onEnd(stream)
  }

  /** Ends a stream that the client has reset. @throws ConnectionError */
  reset(streamId: number): void {
    this.#requireOpened(streamId)
    const stream = this.#open.find(streamId)
    if (stream === undefined) return this.#options.budget.countUseless()
    // Nothing of it is left on its way.
    stream.hasEnded = true
    stream.close()
    this.#options.budget.countReset()
  }

  /** Widens the send window of a stream. @throws ConnectionError */
  widen(streamId: number, bytes: number): void {
    this.#requireOpened(streamId)
    const stream = this.#open.find(streamId)
    if (stream === undefined) return
    if (bytes === 0) this.#resetFor(stream, ErrorCode.protocolError)
    else if (!this.sender.widenStream(stream, bytes)) {
      this.#resetFor(stream, ErrorCode.flowControlError)
    }
  }

  /** Removes a stream that takes and sends no further frames. Called by streams. */
  forget(stream: ServerStream): void {
    this.#open.delete(stream)
    this.#over.add(stream.id, !stream.hasEnded)
    this.sender.drop(stream)
  }

  /** Frees the place of a stream whose last frame has gone. Called by streams. */
  closed(): void {
    this.#places -= 1
    if (this.#places === 0) this.#options.onIdle()
  }

  get #initialReceiveWindow(): number {
    const { windowBytes } = this.#options.bounds
    return this.#isConfirmed ? windowBytes : Math.max(windowBytes, DEFAULT_WINDOW_BYTES)
  }

  #onTrailers(stream: ServerStream, isEnd: boolean, block: Buffer): void {
    const areRight = this.#headers.readTrailers(block)
    if (stream.hasEnded) this.#resetFor(stream, ErrorCode.streamClosed)
    else if (!areRight || !isEnd) this.#resetFor(stream, ErrorCode.protocolError)
    else this.#onEnd(stream)
  }

  #onLateBlock(streamId: number, block: Buffer): void {
    const { headers } = this.#headers.readRequest(block)
    if (this.#over.wasCut(streamId)) return
    if (this.#over.hasEnded(streamId)) {
      throw new ConnectionError(ErrorCode.streamClosed, `HEADERS on stream ${streamId}`)
    }
    if (headers !== undefined) {
      throw new ConnectionError(ErrorCode.protocolError, `stream ${streamId} opens too late`)
    }
    this.#refuse(streamId, ErrorCode.streamClosed, false)
  }

  #onRequest(streamId: number, isEnd: boolean, block: Buffer): void {
    if (streamId % 2 === 0) {
      throw new ConnectionError(ErrorCode.protocolError, `a client opens stream ${streamId}`)
    }
    this.#lastId = streamId
    const read = this.#headers.readRequest(block)
    const { headers } = read
    const code = this.#refusalOf(read)
    if (code !== undefined) return this.#refuse(streamId, code, isEnd)
    const bodyLeft = headers && contentLength(headers)
    if (headers === undefined || (isEnd && (bodyLeft ?? 0) > 0)) {
      return this.#refuse(streamId, ErrorCode.protocolError, isEnd)
    }
    const stream = new ServerStream(this, {
      id: streamId,
      headers,
      headerBytes: read.listBytes,
      hasEnded: isEnd,
      bodyLeft,
      sendWindow: this.#initialSendWindow,
      receiveWindow: this.#initialReceiveWindow,
    })
    this.#places += 1
    this.#open.add(stream)
    this.#options.budget.earn()
    this.#options.onStream(stream)
    if (isEnd && !stream.isOver) stream.handler?.ended()
  }

  #refusalOf({ listBytes }: ReadHeaders): ErrorCode | undefined {
    const { maxConcurrentStreams, maxHeaderListBytes } = this.#options.bounds
    const isTooMany = this.isStopping || this.#places >= maxConcurrentStreams
    if (isTooMany) return ErrorCode.refusedStream
    const most = this.#isConfirmed ? maxHeaderListBytes : MAX_LIST_BYTES
    return listBytes > most ? ErrorCode.enhanceYourCalm : undefined
  }

  /** Bytes of the connection are always taken: those of a stream that is paused are held up by its own window. */
  #returnWindow(bytes: number): void {
    this.#unreturnedBytes += bytes
    if (2 * this.#unreturnedBytes < this.windowBytes) return
    this.sender.control(windowUpdateFrame(0, this.#unreturnedBytes))
    this.#receiveWindow += this.#unreturnedBytes
    this.#unreturnedBytes = 0
  }

  #onLateData(streamId: number): void {
    if (this.#over.wasCut(streamId)) return
    if (this.#over.hasEnded(streamId)) {
      throw new ConnectionError(ErrorCode.streamClosed, `DATA on stream ${streamId}`)
    }
    // It ended so long ago that nothing is known of it: further frames may be on their way.
    this.#refuse(streamId, ErrorCode.streamClosed, false)
  }

  #onEnd(stream: ServerStream): void {
    if ((stream.bodyLeft ?? 0) > 0) return this.#resetFor(stream, ErrorCode.protocolError)
    stream.hasEnded = true
    stream.handler?.ended()
  }

  /** Ends a stream whose client broke the protocol. */
  #resetFor(stream: ServerStream, code: ErrorCode): void {
    stream.reset(code)
    this.#options.budget.countReset()
  }

  /** Ends a stream that was never given out. */
  #refuse(streamId: number, code: ErrorCode, hasEnded: boolean): void {
    this.sender.reset(streamId, code)
    this.#over.add(streamId, !hasEnded)
    this.#options.budget.countReset()
  }

  #requireOpened(streamId: number): void {
    if (streamId <= this.#lastId) return
    throw new ConnectionError(ErrorCode.protocolError, `stream ${streamId} is not open`)
  }
}
