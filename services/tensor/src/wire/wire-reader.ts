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
