import { ConnectionError, ErrorCode } from './error-code.ts'
import { HpackDecoder } from './hpack/decoder.ts'
import { areTrailers, type RequestHeaders, toRequestHeaders } from './request-headers.ts'

/** One block of fields, read as the beginning of a request. */
export interface ReadHeaders {
  /** Undefined if they are none that a request may have. */
  readonly headers: RequestHeaders | undefined
  /** Bytes of the fields, as a header list counts. */
  readonly listBytes: number
}

/** Encoded, however it is cut into frames. A decoded list may be larger, and what it may have at most is told apart. */
const MAX_BLOCK_BYTES = 2 ** 16
/** Bytes of a header list; the fields of a larger one that are beyond them are dropped. */
export const MAX_LIST_BYTES = 2 ** 16
/** Bytes of a block that is kept: one that clients send again and again is short, because it stands in the table. */
const MAX_CACHED_BLOCK_BYTES = 256
const MAX_CACHED = 16

/** Reads the field blocks of one connection, which must all come here, in their order. A block that came before costs next to nothing. */
export class HeaderReader {
  readonly #decoder = new HpackDecoder()
  readonly #cache = new Map<string, ReadHeaders>()
  #cachedAt = 0

  /** @throws ConnectionError COMPRESSION_ERROR */
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

  /** @returns whether they are fields that trailers may have. @throws ConnectionError COMPRESSION_ERROR */
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

/** A block whose frames have not all come. Nothing else may come between them. */
export class OpenBlock {
  readonly streamId: number
  readonly isEnd: boolean
  readonly #pieces: Buffer[] = []
  #bytes = 0

  /** @param first - copied, as are the others: they are views of what was read. */
  constructor(streamId: number, isEnd: boolean, first: Buffer) {
    this.streamId = streamId
    this.isEnd = isEnd
    this.add(first)
  }

  /** @throws ConnectionError ENHANCE_YOUR_CALM */
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
