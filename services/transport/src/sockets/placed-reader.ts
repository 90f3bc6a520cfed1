import { bug } from '@tutti/errors'

/** The place of a message's bytes that are still to come. */
export interface Arrival {
  /** The last bytes of the message, as many as fit; nothing else writes there until `arrived`. */
  readonly into: Uint8Array
  /** Called once all bytes are there; not if the connection ends before. */
  readonly arrived: () => void
}

/**
 * Finds the place of a message when it begins to come.
 *
 * @param head - its first bytes, HEAD_BYTES of them or all; valid during the call.
 * @returns undefined to drop the message.
 */
export type Place = (head: Uint8Array) => Arrival | undefined

/** The rules of a protocol for the bytes between its messages. */
export interface Grammar {
  /**
   * Reads the bytes between messages, and calls the reader's `skip` for those that it understands.
   *
   * @param own - what has come and is not understood lies in it from `start` to `end`, at least one byte.
   * @returns false if it needs more.
   * @throws an error if the bytes cannot be right.
   */
  read(own: Buffer, start: number, end: number): boolean
}

/** Bytes of a message that are read before its place is asked for. */
export const HEAD_BYTES = 512
/** Most bytes between two messages: INFO with the addresses of a large cluster. */
export const OWN_BYTES = 64 * 1024
/**
 * Bytes that are read at once where a line or a head is expected and tensors may follow: every byte of a payload beyond them is
 * not copied.
 */
export const READ_BYTES = 4096
/** A rest of a message that is shorter is read together with what follows it. */
const DIRECT_BYTES = 4096

/**
 * Reads messages from whatever pieces their bytes come in. It says where the next bytes should be read to: what stands between
 * messages into memory of its own, a message straight to its place.
 */
export class PlacedReader {
  readonly #grammar: Grammar
  readonly #readBytes: number
  readonly #own = Buffer.allocUnsafeSlow(OWN_BYTES)
  /** Start of the part of `#own` that has been read and not understood. */
  #start = 0
  #end = 0
  /** A message whose head is not there. */
  #announced: { readonly size: number; readonly place: Place } | undefined
  #arrival: Arrival | undefined
  /** Bytes that are in `#arrival`. */
  #filled = 0
  /** Bytes of a dropped message that are still to come. */
  #dropped = 0
  #isDirect = false

  /** @param readBytes - that are read at once where no message is on its way to its place; up to OWN_BYTES. */
  constructor(grammar: Grammar, readBytes: number) {
    this.#grammar = grammar
    this.#readBytes = readBytes
  }

  /** True if all bytes that were read are understood. */
  get isEmpty(): boolean {
    return this.#start === this.#end
  }

  /** Drops bytes that the grammar has understood. */
  skip(bytes: number): void {
    this.#start += bytes
  }

  /** Expects a message of `size` bytes behind what the grammar has understood. */
  announce(size: number, place: Place): void {
    this.#announced = { size, place }
    if (size === 0) this.#begin(0, place, 0)
  }

  /** Gives the memory to read the next bytes into, at least one byte. */
  target(): Uint8Array {
    const arrival = this.#arrival
    this.#isDirect = arrival !== undefined && arrival.into.byteLength - this.#filled >= DIRECT_BYTES
    if (arrival !== undefined && this.#isDirect) return arrival.into.subarray(this.#filled)
    if (this.#start > 0) this.#own.copyWithin(0, this.#start, this.#end)
    this.#end -= this.#start
    this.#start = 0
    const most = this.#dropped > READ_BYTES ? OWN_BYTES : this.#end + this.#readBytes
    return this.#own.subarray(this.#end, Math.min(most, OWN_BYTES))
  }

  /** Takes the `size` bytes that were read into the last target. @throws an error if they are not the protocol; then the connection is of no use. */
  took(size: number): void {
    if (this.#isDirect) this.#fill(size)
    else {
      this.#end += size
      this.#parse()
    }
  }

  /** Reads bytes that are elsewhere. @throws as `took`. */
  take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.byteLength; ) {
      const target = this.target()
      const size = Math.min(target.byteLength, bytes.byteLength - at)
      target.set(bytes.subarray(at, at + size))
      at += size
      this.took(size)
    }
  }

  #parse(): void {
    while (this.#start < this.#end && this.#step());
  }

  /** @returns false if more bytes are needed. */
  #step(): boolean {
    const left = this.#end - this.#start
    if (this.#dropped > 0) {
      const size = Math.min(this.#dropped, left)
      this.#start += size
      this.#dropped -= size
      return true
    }
    if (this.#arrival !== undefined) {
      const { into } = this.#arrival
      const size = Math.min(into.byteLength - this.#filled, left)
      into.set(this.#own.subarray(this.#start, this.#start + size), this.#filled)
      this.#start += size
      this.#fill(size)
      return true
    }
    if (this.#announced !== undefined) {
      const { size, place } = this.#announced
      return this.#begin(size, place, left)
    }
    return this.#grammar.read(this.#own, this.#start, this.#end)
  }

  #begin(size: number, place: Place, left: number): boolean {
    const headBytes = Math.min(size, HEAD_BYTES)
    if (left < headBytes) return false
    this.#announced = undefined
    const arrival = place(this.#own.subarray(this.#start, this.#start + headBytes))
    if (arrival === undefined) {
      this.#dropped = size
      return true
    }
    const skipped = size - arrival.into.byteLength
    if (skipped < 0 || skipped > headBytes) throw bug(`a message of ${size} bytes is misplaced`)
    this.#start += skipped
    this.#arrival = arrival
    this.#filled = 0
    if (arrival.into.byteLength === 0) this.#fill(0)
    return true
  }

  #fill(size: number): void {
    const arrival = this.#arrival
    this.#filled += size
    if (arrival === undefined || this.#filled < arrival.into.byteLength) return
    this.#arrival = undefined
    this.#isDirect = false
    arrival.arrived()
  }
}
