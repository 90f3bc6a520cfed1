import { badFrame, type Frame, type FrameHeader, HEADER_BYTES, readHeader } from './frames.ts'

/** Texts and shapes of a frame; far above what any real one has. */
const MOST_META_BYTES = 64 * 1024 * 1024
const NOTHING = Buffer.alloc(0)

/** Cuts what comes from a socket into frames. A frame's payload is memory of its own, its meta may be a view. */
export class FrameReader {
  readonly #mostPayload: number
  readonly #onFrame: (frame: Frame) => void
  /** What has come of a frame's head and meta, while they are not complete; joined once, as a meta may come in many chunks. */
  #pending: Buffer[] = []
  #pendingBytes = 0
  /** Bytes of head and meta, as far as known. */
  #wantedBytes = HEADER_BYTES
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
    this.#keep(chunk)
    if (this.#pendingBytes < this.#wantedBytes) return NOTHING
    const bytes = this.#pending.length === 1 ? chunk : Buffer.concat(this.#pending)
    this.#pending = []
    this.#pendingBytes = 0
    const header = readHeader(bytes, 0)
    if (header.metaBytes > MOST_META_BYTES) throw badFrame(`${header.metaBytes} bytes of texts`)
    if (header.payloadBytes > this.#mostPayload) {
      throw badFrame(`${header.payloadBytes} bytes in a frame, want at most ${this.#mostPayload}`)
    }
    const end = HEADER_BYTES + header.metaBytes
    this.#wantedBytes = end
    if (bytes.length < end) {
      this.#keep(bytes)
      return NOTHING
    }
    this.#wantedBytes = HEADER_BYTES
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

  #keep(bytes: Buffer): void {
    this.#pending.push(bytes)
    this.#pendingBytes += bytes.length
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
