import { ConnectionError, ErrorCode } from './error-code.ts'
import {
  DEFAULT_WINDOW_BYTES,
  Flag,
  FRAME_HEADER_BYTES,
  LEAST_MAX_FRAME_BYTES,
  MAX_WINDOW_BYTES,
  putFrameHeader,
  resetFrame,
  Type,
} from './frames.ts'
import type { FieldBlock } from './hpack/encoder.ts'
import type { Outgoing, ServerStream, StreamSender } from './stream.ts'

/** Output of a connection: a socket. */
export interface ByteSink {
  /**
   * Sends all pieces as one write.
   *
   * @param done - called later, once the socket has taken them; never, if the connection ends first.
   */
  write(pieces: readonly Uint8Array[], done: () => void): void
  /** Ends the output after the bytes written so far. Waits a short time for the client to end too, then destroys the socket. */
  end(): void
  /** Destroys the socket after a short time, whether or not the client has taken the bytes written so far. */
  endSoon(): void
  destroy(): void
}

export interface SenderOptions {
  readonly sink: ByteSink
  /** Called for each DATA frame that is put in the output, with the bytes of its payload. */
  readonly onData: (bytes: number) => void
  /** Called when all bytes of one `write` of a stream are in the output. */
  readonly onWhole: () => void
  /** Called when the client reads nothing and yet causes too many control frames. */
  readonly onOverflow: () => void
}

/** Bytes that are given to the socket at a time: what comes behind them waits so long. */
const BATCH_BYTES = 2 ** 19
/** The turn of one stream, if its client takes such frames. */
const TURN_BYTES = 2 ** 18
/** Small frames are written into buffers of this size, which go out whole. */
const STAGE_BYTES = 2 ** 14
/** More bytes than this are not copied. */
const MAX_COPIED_BYTES = 2 ** 11
/** Answers to frames of the client that may wait for it: what is above this is for harm. */
const MAX_CONTROL_FRAMES = 2 ** 14
/** The size 0 for the table, which the first block begins with: we use none. @see RFC 7541, 6.3 */
const NO_TABLE = 0x20

/**
 * Sends the frames of one connection. All frames of one turn of the event loop go out as one write. The next write waits until
 * the socket has taken it. Bodies go out as far as the client's windows allow, and streams take turns.
 */
export class Sender implements StreamSender {
  readonly #options: SenderOptions
  /** Whole frames, and what they end with. */
  #pieces: Uint8Array[] = []
  #bytes = 0
  #stage = Buffer.alloc(0)
  /** The part of the stage that stands in no piece yet. */
  #from = 0
  #to = 0
  #controls = 0
  /** To be called when the pieces have gone. */
  #taken: (() => void)[] = []
  /** Bodies that pieces view. */
  #onWay: Outgoing[] = []
  #over: ServerStream[] = []
  /** The same of those that are on their way. */
  #overSoon: readonly ServerStream[] = []
  #onWaySoon: readonly Outgoing[] = []
  /** Streams that have bytes and a window, in the order of their turns. */
  readonly #ready = new Set<ServerStream>()
  #window = DEFAULT_WINDOW_BYTES
  #isFirstBlock = true
  #isScheduled = false
  #isWriting = false
  #isEnding = false
  #isClosed = false
  /** Most bytes of a frame's payload that the client takes. */
  maxFrameBytes = LEAST_MAX_FRAME_BYTES

  constructor(o: SenderOptions) {
    this.#options = o
  }

  /** Sends a whole frame, which does not count in the windows. */
  control(frame: Uint8Array): void {
    const at = this.#room(frame.byteLength)
    this.#stage.set(frame, at)
    this.#controls += 1
    if (this.#controls > MAX_CONTROL_FRAMES) this.#options.onOverflow()
  }

  reset(streamId: number, code: ErrorCode): void {
    this.control(resetFrame(streamId, code))
  }

  headers({ id }: ServerStream, fields: FieldBlock, isEnd: boolean): void {
    const block = this.#isFirstBlock ? Buffer.concat([Uint8Array.of(NO_TABLE), fields]) : fields
    this.#isFirstBlock = false
    let type: number = Type.headers
    let sent = 0
    do {
      const length = Math.min(block.byteLength - sent, LEAST_MAX_FRAME_BYTES)
      const isLast = sent + length === block.byteLength
      const ends = isEnd && type === Type.headers ? Flag.endStream : 0
      const flags = ends | (isLast ? Flag.endHeaders : 0)
      this.#frame({ length, type, flags, streamId: id }, block.subarray(sent, sent + length))
      type = Type.continuation
      sent += length
    } while (sent < block.byteLength)
  }

  data(stream: ServerStream, outgoing: Outgoing): void {
    const { bytes, taken } = outgoing
    const length = bytes.byteLength
    const isSmall = length <= MAX_COPIED_BYTES && stream.queue.length === 0
    if (isSmall && length <= stream.sendWindow && length <= this.#window) {
      this.#data(stream, bytes)
      outgoing.sent = length
      this.#options.onWhole()
      this.#finish(outgoing)
      if (taken !== undefined) this.#taken.push(taken)
      return
    }
    stream.queue.push(outgoing)
    this.#makeReady(stream)
  }

  end(stream: ServerStream, fields: FieldBlock): void {
    if (stream.queue.length === 0) this.#last(stream, fields)
    else stream.trailers = fields
  }

  /** Widens the send window of a stream. @returns false if the window would exceed its maximum. */
  widenStream(stream: ServerStream, bytes: number): boolean {
    if (stream.sendWindow + bytes > MAX_WINDOW_BYTES) return false
    stream.sendWindow += bytes
    if (stream.queue.length > 0) this.#makeReady(stream)
    return true
  }

  /** Widens the send window of the connection. @throws ConnectionError FLOW_CONTROL_ERROR if it would exceed its maximum. */
  widen(bytes: number): void {
    if (this.#window + bytes > MAX_WINDOW_BYTES) {
      throw new ConnectionError(ErrorCode.flowControlError, 'the window is too large')
    }
    this.#window += bytes
    if (this.#ready.size > 0) this.#schedule()
  }

  /** Drops the unsent bytes of a stream that is over. */
  drop(stream: ServerStream): void {
    this.#ready.delete(stream)
    for (const outgoing of stream.queue) this.#finish(outgoing)
  }

  /** Ends the connection once all frames have gone. */
  finish(): void {
    this.#isEnding = true
    this.#schedule()
  }

  /** Ends all sending, since the connection is gone. Streams close, and bytes that wait are released. */
  close(): void {
    this.#isClosed = true
    for (const stream of [...this.#overSoon, ...this.#over]) stream.close()
    // The socket reads no more: it is gone, or goes at once.
    this.#arrived([...this.#onWaySoon, ...this.#onWay])
    this.#onWaySoon = this.#onWay = []
    this.#overSoon = this.#over = this.#taken = this.#pieces = []
    this.#stage = Buffer.alloc(0)
    this.#ready.clear()
  }

  #makeReady(stream: ServerStream): void {
    if (stream.sendWindow <= 0 || this.#isClosed) return
    this.#ready.add(stream)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isWriting || this.#isClosed) return
    this.#isScheduled = true
    setImmediate(this.#flush)
  }

  readonly #flush = (): void => {
    this.#isScheduled = false
    if (this.#isWriting || this.#isClosed) return
    while (this.#bytes < BATCH_BYTES && this.#window > 0) {
      const [stream] = this.#ready
      if (stream === undefined) break
      this.#takeTurn(stream)
    }
    this.#cut()
    if (this.#bytes > 0) this.#write()
    else if (this.#isEnding) this.#options.sink.end()
  }

  #write(): void {
    const pieces = this.#pieces
    const taken = this.#taken
    const over = (this.#overSoon = this.#over)
    const onWay = (this.#onWaySoon = this.#onWay)
    this.#pieces = []
    this.#taken = []
    this.#over = []
    this.#onWay = []
    this.#bytes = 0
    this.#controls = 0
    this.#isWriting = true
    this.#options.sink.write(pieces, () => {
      if (this.#isClosed) return
      this.#isWriting = false
      this.#overSoon = []
      this.#onWaySoon = []
      this.#arrived(onWay)
      for (const callback of taken) callback()
      for (const stream of over) stream.close()
      // Not at once: a client that reads as fast as we write would keep the others waiting.
      if (this.#bytes > 0 || this.#ready.size > 0 || this.#isEnding) this.#schedule()
    })
  }

  /** Sends one frame of a stream that is ready, and has it wait for its next turn. */
  #takeTurn(stream: ServerStream): void {
    this.#ready.delete(stream)
    const [outgoing] = stream.queue
    // A change of settings may have taken its window.
    if (outgoing === undefined || stream.sendWindow <= 0) return
    const { bytes, sent } = outgoing
    const left = bytes.byteLength - sent
    const turn = Math.min(left, this.maxFrameBytes, TURN_BYTES)
    const length = Math.min(turn, this.#window, stream.sendWindow)
    this.#data(stream, bytes.subarray(sent, sent + length))
    outgoing.sent += length
    if (length > MAX_COPIED_BYTES && !outgoing.isOnWay) {
      outgoing.isOnWay = true
      this.#onWay.push(outgoing)
    }
    if (length === left) {
      stream.queue.shift()
      this.#options.onWhole()
      this.#finish(outgoing)
      if (outgoing.taken !== undefined) this.#taken.push(outgoing.taken)
    }
    if (stream.queue.length > 0) {
      if (stream.sendWindow > 0) this.#ready.add(stream)
    } else if (stream.trailers !== undefined) this.#last(stream, stream.trailers)
  }

  /** No more of the bytes is sent. */
  #finish(outgoing: Outgoing): void {
    if (outgoing.isOver) return
    outgoing.isOver = true
    if (!outgoing.isOnWay) outgoing.released?.()
  }

  /** The socket has written these as far as they were given to it. */
  #arrived(onWay: readonly Outgoing[]): void {
    for (const outgoing of onWay) {
      outgoing.isOnWay = false
      if (outgoing.isOver) outgoing.released?.()
    }
  }

  #last(stream: ServerStream, fields: FieldBlock): void {
    stream.hasResponded = true
    this.headers(stream, fields, true)
    if (!stream.hasEnded) this.reset(stream.id, ErrorCode.noError)
    stream.leave()
    this.#over.push(stream)
  }

  #data(stream: ServerStream, bytes: Uint8Array): void {
    const length = bytes.byteLength
    stream.sendWindow -= length
    stream.sentBytes += length
    this.#window -= length
    this.#frame({ length, type: Type.data, flags: 0, streamId: stream.id }, bytes)
    this.#options.onData(length)
  }

  #frame(header: Parameters<typeof putFrameHeader>[2], payload: Uint8Array): void {
    const { length } = header
    const isCopied = length <= MAX_COPIED_BYTES
    const at = this.#room(FRAME_HEADER_BYTES + (isCopied ? length : 0))
    putFrameHeader(this.#stage, at, header)
    if (isCopied) this.#stage.set(payload, at + FRAME_HEADER_BYTES)
    else {
      this.#cut()
      this.#pieces.push(payload)
      this.#bytes += length
    }
  }

  /** @returns where to write so many bytes in the stage. */
  #room(bytes: number): number {
    if (this.#to + bytes > this.#stage.byteLength) {
      this.#cut()
      this.#stage = Buffer.allocUnsafeSlow(STAGE_BYTES)
      this.#from = this.#to = 0
    }
    const at = this.#to
    this.#to += bytes
    this.#bytes += bytes
    this.#schedule()
    return at
  }

  /** Makes a piece of the bytes of the stage that no piece holds yet. */
  #cut(): void {
    if (this.#to > this.#from) this.#pieces.push(this.#stage.subarray(this.#from, this.#to))
    this.#from = this.#to
  }
}
