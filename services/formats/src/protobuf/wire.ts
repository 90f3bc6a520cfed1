import {
  decodeText,
  malformed,
  NAME_BYTES,
  skipField,
  tooLong,
  tooManyFields,
} from './wire-fields.ts'

const TWO_TO_32 = 4294967296
const VARINT_BYTES = 10
const ASCII_BYTES = 128
/** Length up to which a loop over character codes is faster than a call into native code (Node 24). */
const SHORT_TEXT_BYTES = 24

/**
 * Reads protobuf's wire format. `limit` is the end of the message being read: a nested message narrows it with `enter`
 * and restores it with `leave`, so nothing is ever read across the end of its own message.
 * Every method throws ServeError MALFORMED_MESSAGE rather than read past `limit`.
 */
export class WireReader {
  readonly bytes: Buffer
  position = 0
  limit: number
  /** The two halves of the last varint, as signed 32-bit integers. */
  low = 0
  high = 0
  /** Bytes of all texts that were decoded so far. */
  textBytes = 0
  readonly #maxFields: number
  #fieldsLeft: number

  /**
   * Makes a reader at the start of a message.
   *
   * @param bytes - viewed, not copied.
   * @param maxFields - bound on the fields, with those of nested messages. A field may take as little as two bytes.
   */
  constructor(bytes: Uint8Array, maxFields = 2 ** 30 - 1) {
    this.#maxFields = maxFields
    this.#fieldsLeft = maxFields
    this.bytes = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.limit = bytes.byteLength
  }

  /** Number of fields that were counted so far. */
  get fields(): number {
    return this.#maxFields - this.#fieldsLeft
  }

  hasMore(): boolean {
    return this.position < this.limit
  }

  /** Reads a field number and wire type, `number << 3 | type`, as an unsigned 32-bit integer. */
  tag(): number {
    this.count()
    this.varint()
    const tag = this.low >>> 0
    if (this.high !== 0 || tag < 8) throw malformed(`${tag >>> 3} is no field number`)
    return tag
  }

  /** Counts a field, or an element that costs as much. @throws ServeError MESSAGE_TOO_LARGE for more than `maxFields`. */
  count(): void {
    if (this.#fieldsLeft-- <= 0) throw tooManyFields()
  }

  /** Reads a varint into `low` and `high`. */
  varint(): void {
    const first = this.bytes[this.position] ?? 0
    if (first >= 0x80 || this.position >= this.limit) return this.#longVarint()
    this.position += 1
    this.low = first
    this.high = 0
  }

  /** Reads a varint of more bytes than one, as few tags, lengths and values have. */
  #longVarint(): void {
    const { bytes, limit } = this
    let { position } = this
    let low = 0
    let high = 0
    for (let i = 0; i < VARINT_BYTES; i++) {
      if (position >= limit) throw malformed(`a varint is cut short at byte ${position}`)
      const byte = bytes[position++] ?? 0
      const bits = byte & 0x7f
      const shift = i * 7
      // The fifth byte has bits of both halves.
      if (shift <= 28) low |= bits << shift
      if (shift === 28) high |= bits >> 4
      else if (shift > 28) high |= bits << (shift - 32)
      if (byte < 0x80) {
        this.position = position
        this.low = low
        this.high = high
        return
      }
    }
    throw malformed(`a varint at byte ${this.position} is longer than ${VARINT_BYTES} bytes`)
  }

  /** Reads an int64 as a number, which is exact if it is a safe integer. */
  int64(): number {
    this.varint()
    return this.high * TWO_TO_32 + (this.low >>> 0)
  }

  /** Reads the length that a length-delimited field begins with. It does not check that so many bytes are there. */
  length(): number {
    this.varint()
    if (this.high !== 0 || this.low < 0) throw malformed('a length is over 2^31 - 1 bytes')
    return this.low
  }

  /** Reads the next length-delimited field. @returns a view, not a copy. */
  view(): Buffer {
    const length = this.length()
    const at = this.take(length)
    return this.bytes.subarray(at, at + length)
  }

  /**
   * Reads a string field.
   *
   * @param maxBytes - most bytes of the string; by default those of a name.
   * @param refuse - makes the error for a longer string, which is not decoded.
   * @throws ServeError MALFORMED_MESSAGE if the string is not UTF-8, as proto3 demands; the error of `refuse` if it is too long.
   */
  text(maxBytes = NAME_BYTES, refuse = tooLong): string {
    const length = this.length()
    if (length > maxBytes) throw refuse(length, maxBytes)
    const at = this.take(length)
    this.textBytes += length
    const end = at + length
    const { bytes } = this
    if (length <= SHORT_TEXT_BYTES) {
      let text = ''
      let i = at
      for (; i < end; i++) {
        const code = bytes[i] ?? 0
        if (code >= ASCII_BYTES) break
        text += String.fromCharCode(code)
      }
      if (i === end) return text
    }
    return decodeText(bytes, at, end)
  }

  /** Begins a nested message; pass what it returns to `leave` once `hasMore` is false. */
  enter(): number {
    const length = this.length()
    if (length > this.limit - this.position) this.take(length)
    const outer = this.limit
    this.limit = this.position + length
    return outer
  }

  leave(outer: number): void {
    this.limit = outer
  }

  /** Skips the field that `tag` began. */
  skip(tag: number): void {
    skipField(this, tag)
  }

  /** Moves past `length` bytes and returns where they begin. */
  take(length: number): number {
    const at = this.position
    if (length > this.limit - at) {
      throw malformed(`want ${length} bytes at byte ${at}, got ${this.limit - at}`)
    }
    this.position = at + length
    return at
  }
}

/** Counts the bytes that `value`, a safe non-negative integer, takes as a varint. */
function sizeOfVarint(value: number): number {
  let size = 1
  for (let rest = value / 0x80; rest >= 1; rest /= 0x80) size += 1
  return size
}

/** Computes the bytes of a length-delimited field with a one-byte tag. @param length - bytes of its content. */
export function sizeOfField(length: number): number {
  return 1 + sizeOfVarint(length) + length
}

/**
 * Writes protobuf's wire format. A nested message stands between `begin` and `end`. Tags are given whole (`number << 3 | type`)
 * and below 128.
 */
export class WireWriter {
  #bytes: Buffer
  #position = 0

  /** Allocates the bytes. @param sizeBytes - how much will be written; writing more costs a copy. */
  constructor(sizeBytes: number) {
    this.#bytes = Buffer.allocUnsafe(sizeBytes)
  }

  /** The bytes that were written, as a view. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#position)
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#position++] = value
  }

  /** Writes bytes as they are; copies them. */
  raw(value: Uint8Array): void {
    this.#reserve(value.byteLength)
    this.#bytes.set(value, this.#position)
    this.#position += value.byteLength
  }

  /** Writes a safe non-negative integer as a varint. */
  varint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.byte((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.byte(rest)
  }

  /** Writes a safe integer as int64. */
  int64(value: number): void {
    if (value >= 0) this.varint(value)
    else this.bigint(BigInt(value))
  }

  /** Writes the low 64 bits of `value`, for int64 and uint64. */
  bigint(value: bigint): void {
    let rest = BigInt.asUintN(64, value)
    while (rest > Number.MAX_SAFE_INTEGER) {
      this.byte(Number(rest & 0x7fn) | 0x80)
      rest >>= 7n
    }
    this.varint(Number(rest))
  }

  double(value: number): void {
    this.#reserve(8)
    this.#position = this.#bytes.writeDoubleLE(value, this.#position)
  }

  /** Writes a string field. An empty text writes nothing, as proto3 leaves defaults out. */
  text(tag: number, text: string): void {
    if (text !== '') this.textAlways(tag, text)
  }

  textAlways(tag: number, text: string): void {
    const length = Buffer.byteLength(text)
    this.byte(tag)
    this.varint(length)
    this.#reserve(length)
    if (length === text.length && length <= SHORT_TEXT_BYTES) {
      for (let i = 0; i < length; i++) this.byte(text.charCodeAt(i))
    } else {
      this.#position += this.#bytes.write(text, this.#position, length, 'utf8')
    }
  }

  /** Writes a bytes field; copies the bytes. */
  field(tag: number, value: Uint8Array): void {
    this.byte(tag)
    this.varint(value.byteLength)
    this.raw(value)
  }

  /** Begins a nested message; pass what it returns to `end` once the message is written. */
  begin(tag: number): number {
    this.byte(tag)
    // Its length, which is one byte of most messages.
    this.byte(0)
    return this.#position
  }

  end(start: number): void {
    const length = this.#position - start
    const more = sizeOfVarint(length) - 1
    if (more > 0) {
      this.#reserve(more)
      this.#bytes.copyWithin(start + more, start, this.#position)
    }
    this.#position = start - 1
    this.varint(length)
    this.#position += length
  }

  #reserve(more: number): void {
    if (this.#position + more <= this.#bytes.byteLength) return
    const bytes = Buffer.allocUnsafe(2 * (this.#position + more))
    this.#bytes.copy(bytes)
    this.#bytes = bytes
  }
}
