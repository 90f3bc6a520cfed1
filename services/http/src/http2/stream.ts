import type { ErrorCode } from './error-code.ts'
import { windowUpdateFrame } from './frames.ts'
import type { FieldBlock } from './hpack/encoder.ts'
import type { RequestHeaders } from './request-headers.ts'

/**
 * Receiver of a request. The methods are called while frames are read. Only `closed` may be called within a call of the stream's
 * own methods.
 */
export interface StreamHandler {
  /** Takes bytes of the body. They are a view that is valid during the call. */
  data(piece: Buffer): void
  /** Called when the client has sent all of its request. */
  ended(): void
  /**
   * Called once, when the stream is over: the last frame has gone to the socket, one end has reset it, or the connection is gone.
   */
  closed(): void
}

/** Sender of the frames of streams. */
export interface StreamSender {
  control(frame: Uint8Array): void
  reset(streamId: number, code: ErrorCode): void
  headers(stream: ServerStream, fields: FieldBlock, isEnd: boolean): void
  data(stream: ServerStream, outgoing: Outgoing): void
  end(stream: ServerStream, fields: FieldBlock): void
}

/** Parts of the connection that a stream needs. */
export interface StreamOwner {
  readonly sender: StreamSender
  /** Bytes of a stream that a client may send before they are read. */
  readonly windowBytes: number
  /** Removes a stream that takes and sends no further frames. */
  forget(stream: ServerStream): void
  /** Frees the place of a stream whose last frame has gone. */
  closed(): void
}

/** Bytes that wait for the client. */
export interface Outgoing {
  readonly bytes: Uint8Array
  sent: number
  readonly taken: (() => void) | undefined
  readonly released: (() => void) | undefined
  /** True while the socket reads some of the bytes. Used by the sender. */
  isOnWay: boolean
  /** True once no more of the bytes will be sent. Used by the sender. */
  isOver: boolean
}

/** One request and its answer. */
export class ServerStream {
  readonly id: number
  readonly headers: RequestHeaders
  /** Bytes of `headers`, as a header list counts. */
  readonly headerBytes: number
  readonly #owner: StreamOwner
  /** Handler of the request. The receiver of the stream must set it at once. */
  handler: StreamHandler | undefined
  /** True once the client has sent all of its request. */
  hasEnded: boolean
  /** True once the answer has begun. */
  hasResponded = false
  /** True if nothing more can be sent: the last frame is on its way, or the stream was reset, or its client is gone. */
  isOver = false
  /** State for the sender: bytes that the client takes now, writes that wait, and fields that end the answer. */
  sendWindow: number
  readonly queue: Outgoing[] = []
  trailers: FieldBlock | undefined
  /** State for the connection: bytes that the client may send now, and bytes of the body still to come, if known. */
  receiveWindow: number
  bodyLeft: number | undefined
  /** Bytes of the body that have come, and of the answer that went to the socket. */
  receivedBytes = 0
  sentBytes = 0
  #unreturnedBytes = 0
  #isPaused = false
  #isClosed = false

  constructor(
    owner: StreamOwner,
    o: Pick<ServerStream, 'id' | 'headers' | 'headerBytes' | 'hasEnded' | 'bodyLeft'> &
      Pick<ServerStream, 'sendWindow' | 'receiveWindow'>,
  ) {
    this.#owner = owner
    this.id = o.id
    this.headers = o.headers
    this.headerBytes = o.headerBytes
    this.hasEnded = o.hasEnded
    this.bodyLeft = o.bodyLeft
    this.sendWindow = o.sendWindow
    this.receiveWindow = o.receiveWindow
  }

  /** Bytes that the client may send while the stream is paused. */
  get windowBytes(): number {
    return this.#owner.windowBytes
  }

  /** Begins the answer. This and all further calls have no effect once the stream is over. */
  respond(fields: FieldBlock): void {
    if (this.isOver) return
    this.hasResponded = true
    this.#owner.sender.headers(this, fields, false)
  }

  /**
   * Sends a part of the answer's body, after `respond`.
   *
   * @param bytes - not to be changed until `released` is called.
   * @param taken - called once the socket has taken all of the bytes; never, if the stream ends first.
   * @param released - called once, when the bytes are no longer read: they were sent or dropped, and the socket is done with
   * them.
   */
  write(bytes: Uint8Array, taken?: () => void, released?: () => void): void {
    if (this.isOver) return released?.()
    const outgoing = { bytes, sent: 0, taken, released, isOnWay: false, isOver: false }
    this.#owner.sender.data(this, outgoing)
  }

  /**
   * Ends the answer with these fields. A client that has not sent all of its request is told to stop, without an error.
   *
   * @see RFC 9113, 8.1
   */
  end(fields: FieldBlock): void {
    if (!this.isOver) this.#owner.sender.end(this, fields)
  }

  /**
   * Ends the stream at once. Unsent bytes are dropped, and `closed` does not wait for frames that are on their way to the socket.
   */
  reset(code: ErrorCode): void {
    if (!this.isOver) this.#owner.sender.reset(this.id, code)
    this.close()
  }

  /** Keeps the client from sending more than its window. Bytes that it sends within the window still come. */
  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.returnWindow()
  }

  /** Counts bytes that came, and lets the client send as many more unless the stream is paused. Called by the connection. */
  received(bytes: number): void {
    this.receivedBytes += bytes
    this.receiveWindow -= bytes
    this.#unreturnedBytes += bytes
    this.returnWindow()
  }

  returnWindow(): void {
    const { windowBytes, sender } = this.#owner
    const bytes = this.#unreturnedBytes
    // A frame for each half of a window: in between, the client has the other half.
    if (2 * bytes < windowBytes || this.#isPaused || this.hasEnded || this.isOver) return
    this.#unreturnedBytes = 0
    this.receiveWindow += bytes
    sender.control(windowUpdateFrame(this.id, bytes))
  }

  /**
   * Ends the stream: later frames of it are ignored. Its handler learns of the end in `close`. Called by the connection and the
   * sender.
   */
  leave(): void {
    if (this.isOver) return
    this.isOver = true
    this.#owner.forget(this)
    this.queue.length = 0
    this.trailers = undefined
  }

  /** Ends the stream and calls `closed` of its handler, once. Called by the connection and the sender. */
  close(): void {
    this.leave()
    if (this.#isClosed) return
    this.#isClosed = true
    this.#owner.closed()
    this.handler?.closed()
  }
}
