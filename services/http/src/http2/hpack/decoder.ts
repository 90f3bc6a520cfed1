import { ConnectionError, ErrorCode } from '../error-code.ts'
import { decodeHuffman } from './huffman.ts'
import { type Field, STATIC_TABLE, sizeOf } from './static-table.ts'

/** Bytes of the dynamic table that a client may use that was told nothing else. */
const TABLE_BYTES = 4096
/** No length and no index of ours needs more. */
const MAX_INTEGER = 2 ** 28

/** The fields of one block. */
export interface DecodedBlock {
  /** Fields within the bound on the list. */
  readonly fields: readonly Field[]
  /** Bytes of all fields, also of dropped ones, counted as HTTP/2 counts a header list. */
  readonly listBytes: number
}

/** Decoder for the field blocks of one connection, which share a table. @see RFC 7541 */
export class HpackDecoder {
  /** The newest last. */
  readonly #entries: Field[] = []
  #entriesBytes = 0
  #maxBytes = TABLE_BYTES
  #changes = 0
  #block: Uint8Array = new Uint8Array()
  #at = 0

  /** Number of changes of the table. While it stays the same, equal blocks have equal fields. */
  get changes(): number {
    return this.#changes
  }

  /**
   * Decodes a block. Blocks must come in their order.
   *
   * @param maxListBytes - bound on the fields that are returned. Further fields are decoded, because they may change the table,
   * and dropped.
   * @throws ConnectionError COMPRESSION_ERROR; the decoder cannot be used after that.
   */
  decode(block: Uint8Array, maxListBytes: number): DecodedBlock {
    this.#block = block
    this.#at = 0
    const fields: Field[] = []
    let listBytes = 0
    while (this.#at < block.length) {
      const field = this.#next(fields.length === 0 && listBytes === 0)
      if (field === undefined) continue
      listBytes += sizeOf(field)
      if (listBytes <= maxListBytes) fields.push(field)
    }
    return { fields, listBytes }
  }

  /** The next field; undefined for a change of the table's size. */
  #next(isFirst: boolean): Field | undefined {
    const first = this.#block[this.#at] ?? 0
    if (first & 0x80) return this.#entry(this.#integer(7))
    if (first & 0x40) {
      const field = this.#literal(6)
      this.#insert(field)
      return field
    }
    if ((first & 0x20) === 0) return this.#literal(4)
    if (!isFirst) throw broken('the size of the table changes within a block')
    this.#resize(this.#integer(5))
    return undefined
  }

  #literal(prefixBits: number): Field {
    const index = this.#integer(prefixBits)
    const name = index === 0 ? this.#string() : this.#entry(index).name
    return { name, value: this.#string() }
  }

  #entry(index: number): Field {
    const field =
      index <= STATIC_TABLE.length
        ? STATIC_TABLE[index - 1]
        : this.#entries[this.#entries.length - (index - STATIC_TABLE.length)]
    if (field === undefined) throw broken(`there is no field ${index}`)
    return field
  }

  /** @see RFC 7541, 5.1 */
  #integer(prefixBits: number): number {
    const most = (1 << prefixBits) - 1
    let value = this.#byte() & most
    if (value < most) return value
    for (let unit = 1; unit < MAX_INTEGER; unit *= 128) {
      const byte = this.#byte()
      value += (byte & 0x7f) * unit
      if (value > MAX_INTEGER) break
      if (byte < 0x80) return value
    }
    throw broken('a number is too large')
  }

  #byte(): number {
    const byte = this.#block[this.#at++]
    if (byte === undefined) throw broken('a block ends within a field')
    return byte
  }

  #string(): string {
    const isHuffman = ((this.#block[this.#at] ?? 0) & 0x80) !== 0
    const from = this.#at
    const length = this.#integer(7)
    const begin = this.#at
    const end = begin + length
    if (end > this.#block.length) throw broken('a block ends within a string')
    this.#at = end
    if (!isHuffman) return latin1(this.#block, begin, end)
    const text = decodeHuffman(this.#block, begin, end)
    if (text === undefined) throw broken(`the string at ${from} is not in Huffman's code`)
    return text
  }

  #insert(field: Field): void {
    this.#changes += 1
    this.#entries.push(field)
    this.#entriesBytes += sizeOf(field)
    this.#evict()
  }

  #resize(maxBytes: number): void {
    if (maxBytes > TABLE_BYTES) throw broken(`a table of ${maxBytes} bytes, want ${TABLE_BYTES}`)
    this.#changes += 1
    this.#maxBytes = maxBytes
    this.#evict()
  }

  #evict(): void {
    let count = 0
    while (this.#entriesBytes > this.#maxBytes) {
      const oldest = this.#entries[count++]
      this.#entriesBytes -= oldest === undefined ? this.#entriesBytes : sizeOf(oldest)
    }
    if (count > 0) this.#entries.splice(0, count)
  }
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1')
}

function broken(text: string): ConnectionError {
  return new ConnectionError(ErrorCode.compressionError, text)
}
