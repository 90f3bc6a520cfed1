import { badFrame, type Frame, type FrameHeader, HEADER_BYTES, readHeader } from './frames.ts'

/** Texts and shapes of a frame; far above what any real one has. */
const MOST_META_BYTES = 64 * 1024 * 1024
const NOTHING = Buffer.alloc(0)

/** Cuts what comes from a socket into frames. A frame's payload is memory of its own, its meta may be a view. */
export class FrameReader {
  readonly #mostPayload: number
  readonly #onFrame: (frame: Frame) => void
  /** Bytes of a frame's head and meta that have come, while they are not complete. */
  #pending: Buffer = NOTHING
  /** Set while a payload is coming. */
  #header: FrameHeader | undefined
  #meta: Buffer = NOTHING
  #payload: Buffer = NOTHING
  #filled = 0

  /** @param mostPayload - bytes; a frame that announces more is refused before anything is allocated. */
  constructor(mostPayload: number, onFrame: (frame: Frame) => void) {
    this.#mostPayload = mostPayload
    this.#onFrame = onFrame
  }

  /** @throws ServeError MALFORMED_MESSAGE, after which the reader is of no use. */
  push(chunk: Buffer): void {
    let bytes = chunk
    while (bytes.length > 0) {
      bytes = this.#header === undefined ? this.#takeHead(bytes) : this.#takePayload(bytes)
    }
  }

  #takeHead(chunk: Buffer): Buffer {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    this.#pending = NOTHING
    if (bytes.length < HEADER_BYTES) {
      this.#pending = bytes
      return NOTHING
    }
    const header = readHeader(bytes, 0)
    if (header.metaBytes > MOST_META_BYTES) throw badFrame(`${header.metaBytes} bytes of texts`)
    if (header.payloadBytes > this.#mostPayload) {
      throw badFrame(`${header.payloadBytes} bytes in a frame, want at most ${this.#mostPayload}`)
    }
    const end = HEADER_BYTES + header.metaBytes
    if (bytes.length < end) {
      this.#pending = bytes
      return NOTHING
    }
    const meta = bytes.subarray(HEADER_BYTES, end)
    if (header.payloadBytes === 0) this.#emit(header, meta, NOTHING)
    else {
      this.#header = header
      this.#meta = meta
      this.#payload = Buffer.allocUnsafeSlow(header.payloadBytes)
      this.#filled = 0
    }
    return bytes.subarray(end)
  }

  #takePayload(bytes: Buffer): Buffer {
    const wanted = Math.min(bytes.length, this.#payload.length - this.#filled)
    bytes.copy(this.#payload, this.#filled, 0, wanted)
    this.#filled += wanted
    if (this.#header !== undefined && this.#filled === this.#payload.length) {
      const header = this.#header
      this.#header = undefined
      this.#emit(header, this.#meta, this.#payload)
    }
    return bytes.subarray(wanted)
  }

  #emit({ op, id }: FrameHeader, meta: Buffer, payload: Buffer): void {
    this.#onFrame({ op, id, meta, payload })
  }
}
