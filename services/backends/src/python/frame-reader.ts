import {
  badFrame,
  HEADER_BYTES,
  type InstanceFrame,
  type InstanceFrameHeader,
  readHeader,
} from './frames.ts'

/** Texts and shapes of a frame; far above what any real one has. */
const MOST_META_BYTES = 64 * 1024 * 1024
const NOTHING = Buffer.alloc(0)

/** Cuts the bytes of a socket into frames. A frame's payload is memory of its own; its meta may be a view. */
export class InstanceFrameReader {
  readonly #mostPayload: number
  readonly #onFrame: (frame: InstanceFrame) => void
  /** A header of which not all has come. */
  #head: Buffer = NOTHING
  /** Set while the rest of its frame is coming. */
  #header: InstanceFrameHeader | undefined
  #meta: Buffer = NOTHING
  #payload: Buffer = NOTHING
  /** Those of meta and payload that are to be filled; the first is so far as `#filled` says. */
  #coming: Buffer[] = []
  #filled = 0

  /** Makes a reader. @param mostPayload - most bytes of a payload; a longer one is refused before anything is allocated. */
  constructor(mostPayload: number, onFrame: (frame: InstanceFrame) => void) {
    this.#mostPayload = mostPayload
    this.#onFrame = onFrame
  }

  /** Takes bytes of the socket. @throws ServeError MALFORMED_MESSAGE; the reader cannot be used after that. */
  push(chunk: Buffer): void {
    let bytes = chunk
    while (bytes.length > 0) {
      bytes = this.#header === undefined ? this.#takeHead(bytes) : this.#fill(this.#header, bytes)
    }
  }

  #takeHead(chunk: Buffer): Buffer {
    const missing = HEADER_BYTES - this.#head.length
    const head =
      this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk.subarray(0, missing)])
    if (head.length < HEADER_BYTES) {
      this.#head = head
      return NOTHING
    }
    this.#head = NOTHING
    const header = readHeader(head, 0)
    this.#check(header)
    const rest = chunk.subarray(missing)
    // Most frames come in one piece. What does not is written to its place at once: joining what has come at each chunk
    // took 16 s of the event loop for a text of 20 MB.
    const isWhole = rest.length >= header.metaBytes
    this.#meta = isWhole
      ? rest.subarray(0, header.metaBytes)
      : Buffer.allocUnsafeSlow(header.metaBytes)
    this.#payload =
      header.payloadBytes === 0 ? NOTHING : Buffer.allocUnsafeSlow(header.payloadBytes)
    if (!isWhole) this.#coming.push(this.#meta)
    if (header.payloadBytes > 0) this.#coming.push(this.#payload)
    this.#header = header
    this.#emitIfWhole(header)
    return isWhole ? rest.subarray(header.metaBytes) : rest
  }

  #check({ metaBytes, payloadBytes }: InstanceFrameHeader): void {
    if (metaBytes > MOST_META_BYTES) throw badFrame(`${metaBytes} bytes of texts`)
    if (payloadBytes > this.#mostPayload) {
      throw badFrame(`${payloadBytes} bytes in a frame, want at most ${this.#mostPayload}`)
    }
  }

  #fill(header: InstanceFrameHeader, bytes: Buffer): Buffer {
    const [part = NOTHING] = this.#coming
    const wanted = Math.min(bytes.length, part.length - this.#filled)
    bytes.copy(part, this.#filled, 0, wanted)
    this.#filled += wanted
    if (this.#filled === part.length) {
      this.#coming.shift()
      this.#filled = 0
      this.#emitIfWhole(header)
    }
    return bytes.subarray(wanted)
  }

  #emitIfWhole({ op, id }: InstanceFrameHeader): void {
    if (this.#coming.length > 0) return
    const [meta, payload] = [this.#meta, this.#payload]
    this.#header = undefined
    this.#meta = NOTHING
    this.#payload = NOTHING
    this.#onFrame({ op, id, meta, payload })
  }
}
