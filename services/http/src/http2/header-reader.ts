import { ConnectionError, ErrorCode } from './error-code.ts'
import { HpackDecoder } from './hpack/decoder.ts'
import { areTrailers, type RequestHeaders, toRequestHeaders } from './request-headers.ts'

/** Result of reading a block of fields as the headers of a request. */
export interface ReadHeaders {
  /** Headers of the request; undefined if no request may have such fields. */
  readonly headers: RequestHeaders | undefined
  /** Bytes of the fields, counted as HTTP/2 counts a header list. */
  readonly listBytes: number
}

/** Encoded, however it is cut into frames. A decoded list may be larger, and what it may have at most is told apart. */
const MAX_BLOCK_BYTES = 2 ** 16
/** Most bytes of a header list. Further fields are dropped. */
export const MAX_LIST_BYTES = 2 ** 16
/** Bytes of a block that is kept: one that clients send again and again is short, because it stands in the table. */
const MAX_CACHED_BLOCK_BYTES = 256
const MAX_CACHED = 16

/**
 * Reads the field blocks of one connection. It must get all of them, in their order. A block that came before costs next to
 * nothing.
 */
export class HeaderReader {
  readonly #decoder = new HpackDecoder()
  readonly #cache = new Map<string, ReadHeaders>()
  #cachedAt = 0

  /** Reads the block that begins a request. @throws ConnectionError COMPRESSION_ERROR */
  readRequest(block: Buffer): ReadHeaders {
    if (block.byteLength > MAX_CACHED_BLOCK_BYTES) return this.#decode(block)
    const { changes } = this.#decoder
    if (changes !== this.#cachedAt) this.#cache.clear()
    this.#cachedAt = changes
    const key = block.toString('latin1')
    const known = this.#cache.get(key)
    if (known !== undefined) return known
    const read = this.#decode(block)
    if (this.#decoder.changes !== changes) return read
    if (this.#cache.size >= MAX_CACHED) this.#cache.clear()
    this.#cache.set(key, read)
    return read
  }

  /**
   * Reads the block that ends a request.
   *
   * @returns whether trailers may have such fields.
   * @throws ConnectionError COMPRESSION_ERROR
   */
  readTrailers(block: Buffer): boolean {
    const { fields, listBytes } = this.#decoder.decode(block, MAX_LIST_BYTES)
    return listBytes <= MAX_LIST_BYTES && areTrailers(fields)
  }

  #decode(block: Buffer): ReadHeaders {
    const { fields, listBytes } = this.#decoder.decode(block, MAX_LIST_BYTES)
    return { headers: toRequestHeaders(fields), listBytes }
  }
}

/** Frames that a block may be cut into beyond its first: an honest client fills them. */
const MAX_CONTINUATIONS = 16

/** Block of fields whose frames have not all come. No other frame may come before its last one. */
export class OpenBlock {
  readonly streamId: number
  readonly isEnd: boolean
  readonly #pieces: Buffer[] = []
  #bytes = 0

  /** Begins a block. @param first - its first bytes; copied, as all later ones are. */
  constructor(streamId: number, isEnd: boolean, first: Buffer) {
    this.streamId = streamId
    this.isEnd = isEnd
    this.add(first)
  }

  /**
   * Adds the bytes of a further frame.
   *
   * @throws ConnectionError ENHANCE_YOUR_CALM if the block is too large or has too many frames.
   */
  add(piece: Buffer): void {
    this.#pieces.push(Buffer.from(piece))
    this.#bytes += piece.byteLength
    if (this.#bytes > MAX_BLOCK_BYTES || this.#pieces.length > MAX_CONTINUATIONS + 1) {
      throw new ConnectionError(ErrorCode.enhanceYourCalm, 'a block of fields is too large')
    }
  }

  whole(): Buffer {
    return Buffer.concat(this.#pieces, this.#bytes)
  }
}
