import { RAW_INPUTS } from '@tutti/protocol'
import { ArrivingBytes } from '@tutti/serving'
import type { TensorMemory } from '@tutti/tensor'
import { ApartTensors } from './apart-tensors.ts'

/** Raw contents of at least this size are put apart. */
const APART_BYTES = 65_536
/**
 * Protobuf's wire types, in the lowest bits of a tag. Groups, which nothing writes, are left to the decoder with all after
 * them.
 */
const [VARINT, FIXED64, DELIMITED, FIXED32] = [0, 1, 2, 5]
const TYPES = 8
/**
 * Behind a longer varint, which no tag and no length needs, all is left to the decoder: it drops bits that a number here would
 * keep.
 */
const VARINT_BITS = 49
const PAYLOAD = 0x7f

/**
 * A message that is put together from the pieces in which it arrives. Each byte is copied once, except some of the first ones
 * (see `ArrivingBytes`). With a memory for tensors the message must be a ModelInferRequest: its large raw contents go to that
 * memory, and `bytes` leaves them out.
 */
export class ArrivingMessage {
  readonly #memory: TensorMemory | undefined
  readonly #head: ArrivingBytes
  /** Bytes to come. */
  #left: number
  /** Bytes until another field of the message begins. */
  #skipped: number
  /** The tag of the field whose value or length comes. */
  #tag = 0
  #varint = 0
  #varintBits = 0
  /** The tensor that comes, and how much of it is there. */
  #tensor: Uint8Array | undefined
  #filled = 0
  /** Bytes of the message without tensors that were read, and where in them the current field began. */
  #headBytes = 0
  #fieldAt = 0
  #apart: ApartTensors | undefined

  constructor(sizeBytes: number, memory?: TensorMemory) {
    this.#memory = memory
    this.#head = new ArrivingBytes(sizeBytes)
    this.#left = sizeBytes
    this.#skipped = memory === undefined || sizeBytes < APART_BYTES ? sizeBytes : 0
  }

  get isWhole(): boolean {
    return this.#left === 0
  }

  get bytes(): Buffer {
    return this.#head.bytes
  }

  /** The large tensors that `bytes` leaves out; undefined if there are none. */
  get apart(): ApartTensors | undefined {
    return this.#apart
  }

  /** Copies the bytes of a piece that belong to this message, from `at` on. @returns where the rest of the piece begins. */
  add(piece: Buffer, at: number): number {
    const end = Math.min(piece.byteLength, at + this.#left)
    let next = at
    while (next < end) {
      next = this.#tensor
        ? this.#fill(this.#tensor, piece, next, end)
        : this.#read(piece, next, end)
    }
    return end
  }

  #fill(tensor: Uint8Array, piece: Buffer, at: number, end: number): number {
    const stop = Math.min(end, at + tensor.byteLength - this.#filled)
    tensor.set(piece.subarray(at, stop), this.#filled)
    this.#filled += stop - at
    this.#left -= stop - at
    if (this.#filled === tensor.byteLength) this.#tensor = undefined
    return stop
  }

  /** @returns where a tensor begins, or `end`. */
  #read(piece: Buffer, from: number, end: number): number {
    let at = from
    while (at < end && this.#tensor === undefined) {
      const stop = this.#skipped > 0 ? Math.min(end, at + this.#skipped) : at + 1
      this.#left -= stop - at
      this.#headBytes += stop - at
      if (this.#skipped > 0) this.#skipped -= stop - at
      else this.#readByte(piece[at] ?? 0)
      at = stop
    }
    this.#head.add(piece.subarray(from, at))
    return at
  }

  /** Reads a byte of a tag, a value or a length, each of which may be cut anywhere. */
  #readByte(byte: number): void {
    if (this.#tag === 0 && this.#varintBits === 0) this.#fieldAt = this.#headBytes - 1
    this.#varint += (byte & PAYLOAD) * 2 ** this.#varintBits
    this.#varintBits += 7
    if (byte > PAYLOAD) {
      if (this.#varintBits >= VARINT_BITS) this.#skipped = this.#left
      return
    }
    const value = this.#varint
    const tag = this.#tag
    this.#varint = this.#varintBits = this.#tag = 0
    if (tag === 0) this.#begin(value)
    else if (tag % TYPES === DELIMITED) this.#enter(tag, value)
  }

  #begin(tag: number): void {
    const type = tag % TYPES
    if (type === VARINT || type === DELIMITED) this.#tag = tag
    else if (type === FIXED64) this.#skipped = 8
    else if (type === FIXED32) this.#skipped = 4
    else this.#skipped = this.#left
  }

  #enter(tag: number, length: number): void {
    const isLarge = tag === RAW_INPUTS && length >= APART_BYTES && length <= this.#left
    const part = isLarge ? this.#memory?.take(length) : undefined
    if (part === undefined) {
      this.#skipped = length
      return
    }
    this.#apart ??= new ApartTensors()
    this.#apart.add(this.#fieldAt, part)
    this.#tensor = part.bytes
    this.#filled = 0
  }
}
