import { isUtf8 } from 'node:buffer'
import type { ServeError } from '@tutti/errors'
import { malformedField } from './peer-error.ts'

const VARINT_BYTES = 8
const ASCII_BYTES = 128
/** Up to this length building a text from character codes is faster than a call into native code (Node 24). */
const SHORT_TEXT_BYTES = 24

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
    if (length <= SHORT_TEXT_BYTES) {
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
