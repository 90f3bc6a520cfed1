import type { ErrorCode } from './error-code.ts'
import { windowUpdateFrame } from './frames.ts'
import type { FieldBlock } from './hpack/encoder.ts'
import type { RequestHeaders } from './request-headers.ts'

/** The receiver of a request. All are called as the frames are read, never within a call of the stream's own methods but for `closed`. */
export interface StreamHandler {
  /** Takes bytes of the body: a view that is valid during the call. */
  data(piece: Buffer): void
  /** The client has sent all. */
  ended(): void
  /** The stream is over: the last frame has gone to the socket, or one end has reset it, or the connection is gone. Comes once. */
  closed(): void
}

/** The sender of the frames of streams. */
export interface StreamSender {
  control(frame: Uint8Array): void
  reset(streamId: number, code: ErrorCode): void
  headers(stream: ServerStream, fields: FieldBlock, isEnd: boolean): void
  data(stream: ServerStream, outgoing: Outgoing): void
  end(stream: ServerStream, fields: FieldBlock): void
}

/** The parts of its connection that a stream needs. */
export interface StreamOwner {
  readonly sender: StreamSender
  /** Bytes of a stream that a client may send before they are read. */
  readonly windowBytes: number
  /** Forgets a stream to which no further frame belongs. */
  forget(stream: ServerStream): void
  /** Gives back the place of a stream of which nothing waits. */
  closed(): void
}

/** Bytes that wait for the client. */
export interface Outgoing {
  readonly bytes: Uint8Array
  sent: number
  readonly taken: (() => void) | undefined
  readonly released: (() => void) | undefined
  /** For the sender: the socket reads some of them. */
  isOnWay: boolean
  /** For the sender: no more of them is sent. */
  isOver: boolean
}

/** One request and its answer. */
export class ServerStream {
  readonly id: number
  readonly headers: RequestHeaders
  /** Bytes of `headers`, as a header list counts. */
  readonly headerBytes: number
  readonly #owner: StreamOwner
  /** Must be set when the stream is given out. */
  handler: StreamHandler | undefined
  /** The client has sent all. */
  hasEnded: boolean
  /** The answer has begun. */
  hasResponded = false
  /** True if nothing more can be sent: the last frame is on its way, or the stream was reset, or its client is gone. */
  isOver = false
  /** For the sender: what the client takes now, what waits for that, and how the answer ends. */
  sendWindow: number
  readonly queue: Outgoing[] = []
  trailers: FieldBlock | undefined
  /** For the connection: what the client may send now, and how much of the body is still to come if that is known. */
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

  /** Begins the answer. Nothing happens once the stream is over; the same holds for what follows. */
  respond(fields: FieldBlock): void {
    if (this.isOver) return
    this.hasResponded = true
    this.#owner.sender.headers(this, fields, false)
  }

  /**
   * Sends a part of the body, which has begun.
   *
   * @param bytes - not to be changed until they have gone out.
   * @param taken - called once they have gone to the socket as a whole; never, if the stream ends before.
   * @param released - called once when the bytes are no longer read: they have gone, or will not go, and the socket is done with them.
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

  /** Ends the stream at once; what was not sent is dropped. Last frames that wait for the socket are not waited for. */
  reset(code: ErrorCode): void {
    if (!this.isOver) this.#owner.sender.reset(this.id, code)
    this.close()
  }

  /** Lets the client send no more than its window. What has been sent still comes. */
  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.returnWindow()
  }

  /** For the connection: notes bytes that came, and allows as many more, unless the stream is paused. */
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

  /** For the connection and the sender: ends the stream, whose frames mean nothing from now on. Its handler hears of it in `close`. */
  leave(): void {
    if (this.isOver) return
    this.isOver = true
    this.#owner.forget(this)
    this.queue.length = 0
    this.trailers = undefined
  }

  /** For the connection and the sender: tells the handler, once. */
  close(): void {
    this.leave()
    if (this.#isClosed) return
    this.#isClosed = true
    this.#owner.closed()
    this.handler?.closed()
  }
}
