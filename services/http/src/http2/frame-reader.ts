import { ConnectionError, ErrorCode } from './error-code.ts'
import {
  Flag,
  FRAME_HEADER_BYTES,
  type FrameHeader,
  LEAST_MAX_FRAME_BYTES,
  PREFACE,
  Type,
} from './frames.ts'

/** Receiver of a client's frames, in their order. An error that it throws ends the connection. */
export interface FrameHandler {
  /** Called when a frame begins. Its payload may still be to come. */
  begin(header: FrameHeader): void
  /** Takes a frame other than DATA. @param payload - a view that is valid during the call. */
  frame(header: FrameHeader, payload: Buffer): void
  /** Takes a part of a DATA frame, without its padding. The part is a view that is valid during the call. */
  data(piece: Buffer): void
  /** Called when all of a DATA frame has come. */
  dataEnd(header: FrameHeader): void
}

/** Kept from one beginning of a frame to the next: most that are cut end within their header. */
const KEPT_BYTES = 64

/**
 * Splits a client's bytes into frames. Parts of DATA frames are given out as they come; other frames are put together first. The
 * reader does not look at a chunk after `receive`.
 */
export class FrameReader {
  readonly #handler: FrameHandler
  #hasPreface = false
  /** Bytes that do not suffice for the next step: a copy, in the beginning of `#kept`. And how many bytes that step needs. */
  #kept = Buffer.alloc(0)
  #keptBytes = 0
  #wanted = PREFACE.byteLength
  /** The frame of DATA that is being read, with what is still to come of its bytes and of its padding. */
  #data: FrameHeader | undefined
  #dataLeft = 0
  #paddingLeft = 0
  #isStopped = false

  constructor(handler: FrameHandler) {
    this.#handler = handler
  }

  /** Stops reading. Bytes that were received and not yet read are dropped. */
  stop(): void {
    this.#isStopped = true
    this.#kept = Buffer.alloc(0)
  }

  /** Reads a chunk. @param chunk - not used after the call. @throws ConnectionError */
  receive(chunk: Buffer): void {
    let at = 0
    while (at < chunk.byteLength && !this.#isStopped) {
      if (this.#keptBytes > 0) at = this.#stepWithKept(chunk, at)
      else at = this.#step(chunk, at) ?? this.#keep(chunk, at)
    }
  }

  /** Puts what is kept together with what follows, no more than the next step needs: that takes all, or tells how much more. */
  #stepWithKept(chunk: Buffer, at: number): number {
    const end = this.#keep(chunk, at)
    if (this.#keptBytes < this.#wanted) return end
    if (this.#step(this.#kept.subarray(0, this.#keptBytes), 0) === undefined) return end
    this.#keptBytes = 0
    if (this.#kept.byteLength > KEPT_BYTES) this.#kept = Buffer.alloc(0)
    return end
  }

  /** @returns where what is not kept begins. */
  #keep(chunk: Buffer, at: number): number {
    if (this.#kept.byteLength < this.#wanted) {
      const larger = Buffer.allocUnsafeSlow(Math.max(this.#wanted, KEPT_BYTES))
      this.#kept.copy(larger, 0, 0, this.#keptBytes)
      this.#kept = larger
    }
    const end = Math.min(chunk.byteLength, at + this.#wanted - this.#keptBytes)
    this.#keptBytes += chunk.copy(this.#kept, this.#keptBytes, at, end)
    return end
  }

  /** @returns where the next step begins; undefined if more has to come first. */
  #step(bytes: Buffer, at: number): number | undefined {
    if (this.#data !== undefined) return this.#readData(this.#data, bytes, at)
    const has = bytes.byteLength - at
    if (!this.#hasPreface) return this.#readPreface(bytes, has)
    this.#wanted = FRAME_HEADER_BYTES
    if (has < this.#wanted) return undefined
    const header = readHeader(bytes, at)
    const { length, type, flags } = header
    this.#checkLength(header)
    const isPaddedData = type === Type.data && (flags & Flag.padded) !== 0
    // The step needs only that part of DATA that says how it goes on.
    this.#wanted += type === Type.data ? Number(isPaddedData) : length
    if (has < this.#wanted) return undefined
    this.#handler.begin(header)
    const begin = at + FRAME_HEADER_BYTES
    if (type !== Type.data) {
      this.#handler.frame(header, bytes.subarray(begin, begin + length))
      return begin + length
    }
    this.#data = header
    this.#paddingLeft = isPaddedData ? (bytes[begin] ?? 0) : 0
    this.#dataLeft = length - this.#paddingLeft - Number(isPaddedData)
    if (this.#dataLeft < 0) throw new ConnectionError(ErrorCode.protocolError, 'too much padding')
    this.#endDataIfWhole(header)
    return begin + Number(isPaddedData)
  }

  #readPreface(bytes: Buffer, has: number): number | undefined {
    // Bytes that are no preface are refused at the first byte that shows it.
    const length = Math.min(has, PREFACE.byteLength)
    if (bytes.compare(PREFACE, 0, length, 0, length) !== 0) {
      throw new ConnectionError(ErrorCode.protocolError, 'this is no HTTP/2')
    }
    // So the next bytes are looked at as they come.
    this.#wanted = has + 1
    if (has < PREFACE.byteLength) return undefined
    this.#hasPreface = true
    return PREFACE.byteLength
  }

  #readData(header: FrameHeader, bytes: Buffer, at: number): number {
    const has = bytes.byteLength - at
    const length = Math.min(has, this.#dataLeft)
    this.#dataLeft -= length
    if (length > 0) this.#handler.data(bytes.subarray(at, at + length))
    const padding = Math.min(has - length, this.#paddingLeft)
    this.#paddingLeft -= padding
    this.#endDataIfWhole(header)
    return at + length + padding
  }

  #endDataIfWhole(header: FrameHeader): void {
    if (this.#dataLeft + this.#paddingLeft > 0) return
    this.#data = undefined
    this.#handler.dataEnd(header)
  }

  #checkLength({ length, type, flags }: FrameHeader): void {
    const isTooShort = type === Type.data && length === 0 && (flags & Flag.padded) !== 0
    // We announce no larger frames: a client has nothing of them but longer turns.
    if (length <= LEAST_MAX_FRAME_BYTES && !isTooShort) return
    const text = `a frame of type ${type} has ${length} bytes`
    throw new ConnectionError(ErrorCode.frameSizeError, text)
  }
}

function readHeader(bytes: Buffer, at: number): FrameHeader {
  return {
    length: ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0),
    type: bytes[at + 3] ?? 0,
    flags: bytes[at + 4] ?? 0,
    streamId: bytes.readUInt32BE(at + 5) & 0x7fffffff,
  }
}
