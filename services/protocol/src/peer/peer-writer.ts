import { assert, ServeError } from '@tutti/errors'
import { HEADER_LIMIT_BYTES } from './limits.ts'

/** What stays allocated between messages: a header with some long parameters fits. */
const KEPT_BYTES = 16 * 1024
/** Up to this length writing character codes one by one is faster than a call into native code (Node 24). */
const SHORT_TEXT_LENGTH = 24
const VARINT_BYTES = 8

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
