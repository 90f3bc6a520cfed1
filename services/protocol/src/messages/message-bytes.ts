import { isUtf8 } from 'node:buffer'
import { bug, type ServeError } from '@tutti/errors'
import {
  ALIGNMENT_BYTES,
  HEADER_LIMIT_BYTES,
  INLINE_LIMIT_BYTES,
  INLINE_TOTAL_LIMIT_BYTES,
  MESSAGE_PROTOCOL_VERSION,
} from './limits.ts'
import { malformedField, tooLarge, unsupportedField } from './malformed-field.ts'

/*
 * A message: `TPM`, version (1 byte), type (1), flags (1), two zeros, length of the header (uint32 LE), bytes of the inline
 * tensors (uint32 LE), header, inline tensors, each at a multiple of 8 bytes with zeros between.
 */

/** `TPM` and the version, as a big-endian integer. */
export const MESSAGE_MAGIC = 0x54504d00 + MESSAGE_PROTOCOL_VERSION
export const PREFIX_BYTES = 16

/** Bytes that stay allocated between messages: a header with some long parameters fits. */
const KEPT_BYTES = 16 * 1024
/** Length up to which character codes one by one are faster than a call into native code (Node 24). */
const SHORT_TEXT_LENGTH = 24
const VARINT_BYTES = 8
const ASCII_BYTES = 128

/**
 * Checks the letters and the version that a message begins with.
 *
 * @param magic - three letters and our version, as a big-endian integer.
 * @throws ServeError MALFORMED_MESSAGE for other letters, UNSUPPORTED for another version.
 */
export function checkMagic(bytes: Buffer, letters: string, magic: number): void {
  if (bytes.readUInt32BE(0) === magic) return
  if (bytes.toString('latin1', 0, 3) !== letters) throw malformedField('magic', `want ${letters}`)
  throw unsupportedField('version', `${bytes.readUInt8(3)}, want ${MESSAGE_PROTOCOL_VERSION}`)
}

/** Rounds a position up to where the next inline tensor may begin. */
export function align(position: number): number {
  return Math.ceil(position / ALIGNMENT_BYTES) * ALIGNMENT_BYTES
}

/**
 * Writes messages, one after the other. The header goes into memory that is used again for the next message, because its length
 * is known only at the end. `finish` copies the inline tensors.
 */
export class MemberMessageWriter {
  #bytes = Buffer.allocUnsafeSlow(KEPT_BYTES)
  #position = PREFIX_BYTES
  #tensors: Uint8Array[] = []
  /** Bytes of inline tensors; with the zeros between them. */
  #tensorBytes = 0
  #inlineBytes = 0

  /** Begins a message, and forgets one that was not finished. */
  start(): void {
    this.#position = PREFIX_BYTES
    this.#tensors = []
    this.#tensorBytes = 0
    this.#inlineBytes = 0
    if (this.#bytes.byteLength > KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(KEPT_BYTES)
  }

  /**
   * Ends the message.
   *
   * @returns the message in one piece of memory of its own.
   * @throws ServeError MESSAGE_TOO_LARGE for its header.
   */
  finish(type: number, flags: number): Uint8Array {
    const headerEnd = this.#position
    const headerBytes = headerEnd - PREFIX_BYTES
    if (headerBytes > HEADER_LIMIT_BYTES) throw headerTooLarge(headerBytes)
    const inlineBytes = this.#inlineBytes
    const message = Buffer.allocUnsafe(messageBytes(headerEnd, inlineBytes))
    this.#bytes.copy(message, PREFIX_BYTES, PREFIX_BYTES, headerEnd)
    message.writeUInt32BE(MESSAGE_MAGIC, 0)
    message.writeUInt32BE((type << 24) | (flags << 16), 4)
    message.writeUInt32LE(headerBytes, 8)
    message.writeUInt32LE(inlineBytes, 12)
    let position = headerEnd
    for (const tensor of this.#tensors) {
      const at = align(position)
      // The memory is not cleared, and what was there before must not leave the process.
      message.fill(0, position, at)
      message.set(tensor, at)
      position = at + tensor.byteLength
    }
    this.#tensors = []
    return message
  }

  /**
   * Adds an inline tensor, which follows the header. The bytes are viewed until `finish` copies them.
   *
   * @throws ServeError MESSAGE_TOO_LARGE
   */
  inline(tensor: Uint8Array): void {
    const size = tensor.byteLength
    this.#tensorBytes += size
    if (size > INLINE_LIMIT_BYTES || this.#tensorBytes > INLINE_TOTAL_LIMIT_BYTES) {
      const before = `an inline tensor of ${size} bytes, ${this.#tensorBytes} with those before`
      throw tooLarge(
        `${before}, want at most ${INLINE_LIMIT_BYTES} and ${INLINE_TOTAL_LIMIT_BYTES}`,
      )
    }
    if (size === 0) return
    this.#tensors.push(tensor)
    this.#inlineBytes = align(this.#inlineBytes) + size
  }

  byte(value: number): void {
    this.#ensure(1)
    this.#bytes[this.#position++] = value
  }

  /** Writes the position of `value` in `values`, which MemberMessageReader.choice reads. */
  choice<T>(values: readonly T[], value: T): void {
    const number = values.indexOf(value)
    if (number < 0) throw bug(`${String(value)} has no number in a member message`)
    this.byte(number)
  }

  /** Writes a safe integer of at least 0. */
  integer(value: number): void {
    if (!(Number.isSafeInteger(value) && value >= 0))
      throw bug(`${value} is no integer of a member message`)
    this.#ensure(VARINT_BYTES)
    let rest = value
    while (rest >= 0x80000000) {
      this.#bytes[this.#position++] = (rest & 0x7f) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    while (rest >= 0x80) {
      this.#bytes[this.#position++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.#bytes[this.#position++] = rest
  }

  double(value: number): void {
    this.#ensure(8)
    this.#position = this.#bytes.writeDoubleLE(value, this.#position)
  }

  /** Writes a double. @throws ServeError INTERNAL if MemberMessageReader.finite would refuse it. */
  finite(value: number, min: number): void {
    if (!(value >= min && value <= Number.MAX_SAFE_INTEGER))
      throw bug(`${value} in a member message`)
    this.double(value)
  }

  int64(value: bigint): void {
    if (BigInt.asIntN(64, value) !== value) throw bug(`${value} is no int64`)
    this.#ensure(8)
    this.#position = this.#bytes.writeBigInt64LE(value, this.#position)
  }

  uint64(value: bigint): void {
    if (BigInt.asUintN(64, value) !== value) throw bug(`${value} is no uint64`)
    this.#ensure(8)
    this.#position = this.#bytes.writeBigUInt64LE(value, this.#position)
  }

  /** Writes a text in UTF-8. Lone surrogates, which UTF-8 does not have, become U+FFFD. */
  text(text: string): void {
    const length = Buffer.byteLength(text)
    this.integer(length)
    this.#ensure(length)
    if (length === text.length && length <= SHORT_TEXT_LENGTH) {
      for (let i = 0; i < length; i++) this.#bytes[this.#position++] = text.charCodeAt(i)
    } else {
      this.#position += this.#bytes.write(text, this.#position, length, 'utf8')
    }
  }

  list<T>(
    items: readonly T[],
    bound: number,
    write: (writer: MemberMessageWriter, item: T) => void,
  ): void {
    if (items.length > bound) throw tooLarge(`a list of ${items.length}, want at most ${bound}`)
    this.integer(items.length)
    for (const item of items) write(this, item)
  }

  #ensure(more: number): void {
    const size = this.#position + more
    if (size <= this.#bytes.byteLength) return
    const headerBytes = size - PREFIX_BYTES
    if (headerBytes > HEADER_LIMIT_BYTES + VARINT_BYTES) throw headerTooLarge(headerBytes)
    const larger = Buffer.allocUnsafeSlow(Math.max(size, this.#bytes.byteLength * 2))
    this.#bytes.copy(larger, 0, 0, this.#position)
    this.#bytes = larger
  }
}

/** Computes the bytes of a whole message. */
export function messageBytes(headerEnd: number, inlineBytes: number): number {
  return inlineBytes === 0 ? headerEnd : align(headerEnd) + inlineBytes
}

function headerTooLarge(size: number): ServeError {
  const what = `names, shapes and parameters take ${size} bytes or more`
  return tooLarge(`${what}, want at most ${HEADER_LIMIT_BYTES}`)
}

/**
 * Reads a message of MemberMessageWriter. Every method takes the name of the field that it reads. It throws ServeError
 * MALFORMED_MESSAGE with that name rather than read past the end.
 */
export class MemberMessageReader {
  readonly #bytes: Buffer
  readonly #end: number
  /** Positions in the lists that are being read: name, position, name, position. */
  readonly #path: (string | number)[] = []
  #position = PREFIX_BYTES
  #inlineAt: number
  #tensorBytes = 0

  /**
   * Makes a reader that stands at the begin of the header.
   *
   * @param message - viewed, not copied.
   * @param headerEnd - position where the header ends; inline tensors follow.
   */
  constructor(message: Buffer, headerEnd: number) {
    this.#bytes = message
    this.#end = headerEnd
    this.#inlineAt = headerEnd
  }

  /** Ends the reading. @throws ServeError MALFORMED_MESSAGE if bytes of the header or of the inline tensors are left. */
  end(): void {
    if (this.#left > 0) throw malformedField('header', `${this.#left} bytes after the last field`)
    const over = this.#bytes.byteLength - this.#inlineAt
    if (over !== 0) throw malformedField('inline', `${over} bytes after the last tensor`)
  }

  /** Reads the next inline tensor. @param size - its bytes. @returns a view, not a copy. */
  inline(size: number): Uint8Array {
    const at = align(this.#inlineAt)
    const left = Math.max(0, this.#bytes.byteLength - at)
    this.#tensorBytes += size
    if (size > INLINE_LIMIT_BYTES || this.#tensorBytes > INLINE_TOTAL_LIMIT_BYTES) {
      throw this.malformed('size', `${size} bytes inline, want at most ${INLINE_LIMIT_BYTES}`)
    }
    if (size > left) throw this.malformed('size', `${size} bytes inline and ${left} are left`)
    if (size > 0) this.#inlineAt = at + size
    // No Buffer, whose methods differ from those of the arrays that clients' tensors are.
    return new Uint8Array(this.#bytes.buffer, this.#bytes.byteOffset + (size > 0 ? at : 0), size)
  }

  get #left(): number {
    return this.#end - this.#position
  }

  byte(field: string): number {
    return this.#bytes[this.#take(1, field)] ?? 0
  }

  /** Reads a byte as a position in `values`, and returns the value there. */
  choice<T>(field: string, values: readonly T[]): T {
    const number = this.byte(field)
    const value = values[number]
    if (value === undefined) throw this.malformed(field, `${number}, want below ${values.length}`)
    return value
  }

  /** Reads a safe integer of at least 0. */
  integer(field: string): number {
    let value = 0
    let scale = 1
    for (let i = 0; i < VARINT_BYTES; i++) {
      const byte = this.byte(field)
      value += (byte & 0x7f) * scale
      if (byte < 0x80) {
        if (Number.isSafeInteger(value)) return value
        break
      }
      scale *= 0x80
    }
    throw this.malformed(field, 'an integer over 2^53 - 1')
  }

  /** Reads a double from `min` to 2^53 - 1. @throws ServeError MALFORMED_MESSAGE for others, also for NaN and infinities. */
  finite(field: string, min: number): number {
    const value = this.double(field)
    if (value >= min && value <= Number.MAX_SAFE_INTEGER) return value
    throw this.malformed(field, `${value}, want ${min} to ${Number.MAX_SAFE_INTEGER}`)
  }

  double(field: string): number {
    return this.#bytes.readDoubleLE(this.#take(8, field))
  }

  int64(field: string): bigint {
    return this.#bytes.readBigInt64LE(this.#take(8, field))
  }

  uint64(field: string): bigint {
    return this.#bytes.readBigUInt64LE(this.#take(8, field))
  }

  text(field: string): string {
    const length = this.integer(field)
    const at = this.#take(length, field)
    const end = at + length
    if (length <= SHORT_TEXT_LENGTH) {
      let text = ''
      let i = at
      for (; i < end; i++) {
        const code = this.#bytes[i] ?? 0
        if (code >= ASCII_BYTES) break
        text += String.fromCharCode(code)
      }
      if (i === end) return text
    }
    const view = this.#bytes.subarray(at, end)
    if (!isUtf8(view)) throw this.malformed(field, 'text that is not UTF-8')
    return view.toString('utf8')
  }

  /** Reads a list: its length, and that many items of at least one byte each with `read`. Errors name the item. */
  list<T>(field: string, bound: number, read: (reader: MemberMessageReader) => T): T[] {
    const count = this.integer(field)
    if (count > bound) throw this.malformed(field, `${count} of them, want at most ${bound}`)
    if (count > this.#left) throw this.malformed(field, `${count} of them in ${this.#left} bytes`)
    const items: T[] = []
    const depth = this.#path.push(field, 0)
    for (let i = 0; i < count; i++) {
      this.#path[depth - 1] = i
      items.push(read(this))
    }
    this.#path.length = depth - 2
    return items
  }

  /** Makes an error that names the field, and the list items that contain it. */
  malformed(field: string, what: string): ServeError {
    let path = ''
    for (const part of this.#path) path += typeof part === 'number' ? `[${part}].` : part
    return malformedField(path + field, what)
  }

  /** Moves past `length` bytes and returns where they begin. */
  #take(length: number, field: string): number {
    const at = this.#position
    if (length > this.#left) {
      throw this.malformed(field, `${length} bytes are wanted and ${this.#left} are left`)
    }
    this.#position = at + length
    return at
  }
}
