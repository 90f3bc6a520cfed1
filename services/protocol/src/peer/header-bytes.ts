import { isUtf8 } from 'node:buffer'
import { assert, ServeError } from '@tutti/errors'
import { HEADER_LIMIT_BYTES } from './limits.ts'
import { malformedField } from './peer-error.ts'

/** What stays allocated between messages: a header with some long parameters fits. */
const KEPT_BYTES = 16 * 1024
/** Up to this length character codes one by one are faster than a call into native code (Node 24). */
const SHORT_TEXT_LENGTH = 24
const VARINT_BYTES = 8
const ASCII_BYTES = 128

/**
 * Writes the header of a message into memory that is used again for the next one, because its length is known only at the
 * end. What is written must be copied out before the next `start`.
 */
export class PeerWriter {
  #bytes = Buffer.allocUnsafeSlow(KEPT_BYTES)
  #position = 0

  /** Forgets what was written. */
  start(): void {
    this.#position = 0
    if (this.#bytes.byteLength > KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(KEPT_BYTES)
  }

  /** A view of what was written. */
  get written(): Buffer {
    return this.#bytes.subarray(0, this.#position)
  }

  byte(value: number): void {
    this.#ensure(1)
    this.#bytes[this.#position++] = value
  }

  /** The position of `value` in `values`, which PeerReader.choice reads. */
  choice<T>(values: readonly T[], value: T): void {
    const number = values.indexOf(value)
    assert(number >= 0, `${String(value)} has no number in a peer message`)
    this.byte(number)
  }

  /** A safe integer of at least 0. */
  integer(value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, `${value} is no integer of a peer message`)
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

  /** @throws ServeError INTERNAL if PeerReader.finite would refuse it. */
  finite(value: number, min: number, max: number): void {
    assert(value >= min && value <= max, `${value} in a peer message, want ${min} to ${max}`)
    this.double(value)
  }

  int64(value: bigint): void {
    assert(BigInt.asIntN(64, value) === value, `${value} is no int64`)
    this.#ensure(8)
    this.#position = this.#bytes.writeBigInt64LE(value, this.#position)
  }

  uint64(value: bigint): void {
    assert(BigInt.asUintN(64, value) === value, `${value} is no uint64`)
    this.#ensure(8)
    this.#position = this.#bytes.writeBigUInt64LE(value, this.#position)
  }

  /** Lone surrogates, which UTF-8 does not have, become U+FFFD. */
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

  list<T>(items: readonly T[], bound: number, write: (writer: PeerWriter, item: T) => void): void {
    if (items.length > bound) {
      throw new ServeError(
        'MESSAGE_TOO_LARGE',
        `peer message: a list of ${items.length}, want at most ${bound}`,
      )
    }
    this.integer(items.length)
    for (const item of items) write(this, item)
  }

  #ensure(more: number): void {
    const size = this.#position + more
    if (size <= this.#bytes.byteLength) return
    if (size > HEADER_LIMIT_BYTES + VARINT_BYTES) throw headerTooLarge(size)
    const larger = Buffer.allocUnsafeSlow(Math.max(size, this.#bytes.byteLength * 2))
    this.#bytes.copy(larger, 0, 0, this.#position)
    this.#bytes = larger
  }
}

/** An error for names, shapes and parameters that no message can carry. */
export function headerTooLarge(size: number): ServeError {
  return new ServeError(
    'MESSAGE_TOO_LARGE',
    `peer message: names, shapes and parameters take ${size} bytes or more, want at most ${HEADER_LIMIT_BYTES}`,
  )
}

/**
 * Reads what PeerWriter wrote. Every method names the field that it reads and throws ServeError MALFORMED_MESSAGE for it
 * rather than read past the end.
 */
export class PeerReader {
  readonly #bytes: Buffer
  readonly #end: number
  /** Where the lists being read stand: name, position, name, position. */
  readonly #path: (string | number)[] = []
  #position: number

  /** @param bytes - viewed, not copied; `start` to `end` of it are read. */
  constructor(bytes: Uint8Array, start: number, end: number) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#position = start
    this.#end = end
  }

  /** Bytes that are left. */
  get left(): number {
    return this.#end - this.#position
  }

  byte(field: string): number {
    return this.#bytes[this.#take(1, field)] ?? 0
  }

  /** A byte that is one of `values`. */
  choice<T>(field: string, values: readonly T[]): T {
    const number = this.byte(field)
    const value = values[number]
    if (value === undefined) throw this.malformed(field, `${number}, want below ${values.length}`)
    return value
  }

  /** A safe integer of at least 0. */
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

  /** How many things follow, each of at least one byte. */
  count(field: string, bound: number): number {
    const count = this.integer(field)
    if (count > bound) throw this.malformed(field, `${count} of them, want at most ${bound}`)
    if (count > this.left) throw this.malformed(field, `${count} of them in ${this.left} bytes`)
    return count
  }

  /** @throws also for NaN and infinities and what is outside `min` to `max`. */
  finite(field: string, min: number, max: number): number {
    const value = this.double(field)
    if (value >= min && value <= max) return value
    throw this.malformed(field, `${value}, want ${min} to ${max}`)
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

  /** A count and that many things, which `read` reads. Errors say which one. */
  list<T>(field: string, bound: number, read: (reader: PeerReader) => T): T[] {
    const count = this.count(field, bound)
    const items: T[] = []
    const depth = this.#path.push(field, 0)
    for (let i = 0; i < count; i++) {
      this.#path[depth - 1] = i
      items.push(read(this))
    }
    this.#path.length = depth - 2
    return items
  }

  /** An error that names the field with the lists that it is in. */
  malformed(field: string, what: string): ServeError {
    let path = ''
    for (const part of this.#path) path += typeof part === 'number' ? `[${part}].` : part
    return malformedField(path + field, what)
  }

  /** Moves past `length` bytes and returns where they begin. */
  #take(length: number, field: string): number {
    const at = this.#position
    if (length > this.left) {
      throw this.malformed(field, `${length} bytes are wanted and ${this.left} are left`)
    }
    this.#position = at + length
    return at
  }
}
