import { MAX_OUTPUT_BYTES } from '@tutti/builtins'
import { checkOutputBytes } from '../../output-bound.ts'

/** Bytes of the length before each element. */
export const LENGTH_BYTES = 4
const FIRST_BYTES = 1024

/**
 * Writes the elements of a BYTES output one behind the other. No list holds them, and memory is taken only after its size was held against the
 * bound of outputs.
 */
export class TextWriter {
  readonly #builtin: string
  readonly #beside: number
  #data: Uint8Array<ArrayBuffer>
  #view: DataView
  #length = 0
  #start = 0

  /**
   * @param o.bytes - those of all elements with their lengths, where they are known, so that memory need not grow.
   * @param o.beside - bytes of the other outputs.
   * @throws ServeError MESSAGE_TOO_LARGE
   */
  constructor(builtin: string, o: { readonly bytes?: number; readonly beside?: number } = {}) {
    const { bytes = FIRST_BYTES, beside = 0 } = o
    this.#builtin = builtin
    this.#beside = beside
    checkOutputBytes({ builtin, bytes: bytes + beside })
    this.#data = new Uint8Array(bytes)
    this.#view = new DataView(this.#data.buffer)
  }

  /** Begins an element. @throws ServeError MESSAGE_TOO_LARGE */
  begin(): void {
    this.#reserve(LENGTH_BYTES)
    this.#start = this.#length
    this.#length += LENGTH_BYTES
  }

  /** Adds bytes to the element. @throws ServeError MESSAGE_TOO_LARGE */
  append(part: Uint8Array): void {
    this.#reserve(part.byteLength)
    this.#data.set(part, this.#length)
    this.#length += part.byteLength
    this.#view.setUint32(this.#start, this.#length - this.#start - LENGTH_BYTES, true)
  }

  /** @returns the elements, in memory of their own. Nothing can be written after that. */
  finish(): Uint8Array {
    return new Uint8Array(this.#data.buffer.transfer(this.#length))
  }

  #reserve(bytes: number): void {
    const wanted = this.#length + bytes
    if (wanted <= this.#data.byteLength) return
    checkOutputBytes({ builtin: this.#builtin, bytes: wanted + this.#beside, bound: 'at least' })
    const size = Math.min(Math.max(wanted, 2 * this.#data.byteLength), MAX_OUTPUT_BYTES)
    this.#data = new Uint8Array(this.#data.buffer.transfer(size))
    this.#view = new DataView(this.#data.buffer)
  }
}
