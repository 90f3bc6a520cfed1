import { ServeError } from '@tutti/errors'

const TWO_TO_32 = 4294967296
const VARINT_BYTES = 10
const GROUP_DEPTH = 100
const ASCII_BYTES = 128
/** Up to this length building a text from character codes is faster than a call into native code (Node 24). */
const SHORT_TEXT_BYTES = 24

export const WIRE_VARINT = 0
export const WIRE_FIXED64 = 1
export const WIRE_BYTES = 2
const WIRE_GROUP = 3
const WIRE_GROUP_END = 4
export const WIRE_FIXED32 = 5

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** An error for bytes that are no valid protobuf message. */
export function malformed(what: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', `malformed message: ${what}`)
}

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

  /** @param bytes - viewed, not copied. */
  constructor(bytes: Uint8Array) {
    this.bytes = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.limit = bytes.byteLength
  }

  hasMore(): boolean {
    return this.position < this.limit
  }

  /** A field number and wire type, `number << 3 | type`, as an unsigned 32-bit integer. */
  tag(): number {
    const first = this.bytes[this.position]
    if (first !== undefined && first < 0x80 && first > 7 && this.position < this.limit) {
      this.position += 1
      return first
    }
    this.varint()
    const tag = this.low >>> 0
    if (this.high !== 0 || tag < 8) throw malformed(`${tag >>> 3} is no field number`)
    return tag
  }

  /** Reads into `low` and `high`. */
  varint(): void {
    const { bytes, limit } = this
    let { position } = this
    let low = 0
    let high = 0
    for (let i = 0; i < VARINT_BYTES; i++) {
      if (position >= limit) throw malformed(`a varint is cut short at byte ${position}`)
      const byte = bytes[position++] ?? 0
      const bits = byte & 0x7f
      const shift = i * 7
      if (shift < 28) low |= bits << shift
      else if (shift === 28) {
        low |= bits << 28
        high |= bits >> 4
      } else high |= bits << (shift - 32)
      if (byte < 0x80) {
        this.position = position
        this.low = low
        this.high = high
        return
      }
    }
    throw malformed(`a varint at byte ${this.position} is longer than ${VARINT_BYTES} bytes`)
  }

  /** As bigint only outside of +-(2^53 - 1), where a number would not be exact. */
  safeInt64(): number | bigint {
    this.varint()
    const value = this.high * TWO_TO_32 + (this.low >>> 0)
    return Number.isSafeInteger(value) ? value : this.#signed()
  }

  int64(): bigint {
    this.varint()
    return this.#signed()
  }

  uint64(): bigint {
    this.varint()
    return BigInt.asUintN(64, this.#signed())
  }

  bool(): boolean {
    this.varint()
    return (this.low | this.high) !== 0
  }

  double(): number {
    const at = this.#take(8)
    return this.bytes.readDoubleLE(at)
  }

  /** The length that a length-delimited field begins with; its bytes need not be there. */
  length(): number {
    const first = this.bytes[this.position]
    if (first !== undefined && first < 0x80 && this.position < this.limit) {
      this.position += 1
      return first
    }
    this.varint()
    if (this.high !== 0 || this.low < 0) throw malformed('a length is over 2^31 - 1 bytes')
    return this.low
  }

  /** A view of the next length-delimited field, not a copy. */
  view(): Buffer {
    const length = this.length()
    const at = this.#take(length)
    return this.bytes.subarray(at, at + length)
  }

  /** @throws ServeError MALFORMED_MESSAGE if the bytes are not UTF-8, as proto3 demands of strings. */
  text(): string {
    const length = this.length()
    const at = this.#take(length)
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
    try {
      return utf8.decode(bytes.subarray(at, end))
    } catch {
      throw malformed(`a string at byte ${at} is not UTF-8`)
    }
  }

  /** Begins a nested message; pass what it returns to `leave` once `hasMore` is false. */
  enter(): number {
    const length = this.length()
    if (length > this.limit - this.position) this.#take(length)
    const outer = this.limit
    this.limit = this.position + length
    return outer
  }

  leave(outer: number): void {
    this.limit = outer
  }

  /** Skips the field that `tag` began: unknown fields are no error in protobuf. */
  skip(tag: number, depth = 0): void {
    switch (tag & 7) {
      case WIRE_VARINT:
        return this.varint()
      case WIRE_FIXED64:
        return void this.#take(8)
      case WIRE_BYTES:
        return void this.#take(this.length())
      case WIRE_GROUP:
        return this.#skipGroup(tag >>> 3, depth)
      case WIRE_FIXED32:
        return void this.#take(4)
      default:
        throw malformed(`wire type ${tag & 7} of field ${tag >>> 3}`)
    }
  }

  #skipGroup(field: number, depth: number): void {
    if (depth >= GROUP_DEPTH) throw malformed(`groups are nested deeper than ${GROUP_DEPTH}`)
    for (;;) {
      const tag = this.tag()
      if ((tag & 7) !== WIRE_GROUP_END) {
        this.skip(tag, depth + 1)
        continue
      }
      if (tag >>> 3 !== field) throw malformed(`group ${field} is ended as ${tag >>> 3}`)
      return
    }
  }

  #signed(): bigint {
    return BigInt(this.high | 0) * BigInt(TWO_TO_32) + BigInt(this.low >>> 0)
  }

  /** Moves past `length` bytes and returns where they begin. */
  #take(length: number): number {
    const at = this.position
    if (length > this.limit - at) {
      throw malformed(`want ${length} bytes at byte ${at}, got ${this.limit - at}`)
    }
    this.position = at + length
    return at
  }
}

/** Up to this length writing character codes one by one is faster than a call into native code (Node 24). */
const SHORT_TEXT_LENGTH = 24

/** Bytes that `value`, a safe non-negative integer, takes as a varint. */
function sizeOfVarint(value: number): number {
  let size = 1
  for (let rest = value / 0x80; rest >= 1; rest /= 0x80) size += 1
  return size
}

/** Bytes of a length-delimited field with a one-byte tag. */
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

  /** @param sizeBytes - how much will be written; what is more costs a copy. */
  constructor(sizeBytes: number) {
    this.#bytes = Buffer.allocUnsafe(sizeBytes)
  }

  /** What was written, as a view. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#position)
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#position++] = value
  }

  /** Bytes as they are; copies. */
  raw(value: Uint8Array): void {
    this.#reserve(value.byteLength)
    this.#bytes.set(value, this.#position)
    this.#position += value.byteLength
  }

  /** A safe non-negative integer. */
  varint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.byte((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.byte(rest)
  }

  /** A safe integer as int64. */
  int64(value: number): void {
    if (value >= 0) this.varint(value)
    else this.bigint(BigInt(value))
  }

  /** The low 64 bits of `value`, for int64 and uint64. */
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

  /** A string field; writes nothing for an empty text, as proto3 leaves defaults out. */
  text(tag: number, text: string): void {
    if (text !== '') this.textAlways(tag, text)
  }

  textAlways(tag: number, text: string): void {
    const length = Buffer.byteLength(text)
    this.byte(tag)
    this.varint(length)
    this.#reserve(length)
    if (length === text.length && length <= SHORT_TEXT_LENGTH) {
      for (let i = 0; i < length; i++) this.byte(text.charCodeAt(i))
    } else {
      this.#position += this.#bytes.write(text, this.#position, length, 'utf8')
    }
  }

  /** A bytes field; copies. */
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
