import type { ByteCount } from '@tutti/errors'

/** Smaller tensors count by themselves: to look for the memory that they share would cost more than they hold. */
const SHARED_BYTES = 65_536

/** Memory that tensors view, counted once. */
export interface HeldRange {
  readonly memory: ArrayBufferLike
  readonly begin: number
  readonly end: number
  /** Bytes that were counted for it; 0 for memory of the request. */
  readonly bytes: number
  /** Tensors that view it. */
  uses: number
}

/** How a tensor is counted: by memory that it may share, or alone with so many bytes. */
export type Holding = HeldRange | number

/** Counts the tensors of one ensemble run that are not its request's. Tensors that view the same memory count once. */
export class HeldBytes {
  readonly #count: ByteCount
  readonly #ranges = new Map<ArrayBufferLike, HeldRange[]>()
  #bytes = 0
  #hasEnded = false

  constructor(count: ByteCount) {
    this.#count = count
  }

  /** Takes a tensor of the request, whose memory is counted already. */
  holdOwn(data: Uint8Array): Holding {
    return data.byteLength < SHARED_BYTES ? 0 : this.#add(data, 0)
  }

  /** Counts a tensor until `release`. @throws ServeError OVERLOADED without counting it. */
  hold(data: Uint8Array): Holding {
    const { buffer, byteOffset, byteLength } = data
    if (byteLength < SHARED_BYTES) {
      this.#charge(byteLength)
      return byteLength
    }
    const end = byteOffset + byteLength
    const known = this.#ranges.get(buffer)?.find((it) => it.begin <= byteOffset && end <= it.end)
    if (known === undefined) {
      this.#charge(byteLength)
      return this.#add(data, byteLength)
    }
    known.uses += 1
    return known
  }

  /** Gives a tensor back that was taken. */
  release(holding: Holding): void {
    if (typeof holding === 'number') return this.#charge(-holding)
    holding.uses -= 1
    if (holding.uses > 0) return
    this.#charge(-holding.bytes)
    const ranges = this.#ranges.get(holding.memory) ?? []
    ranges.splice(ranges.indexOf(holding), 1)
    if (ranges.length === 0) this.#ranges.delete(holding.memory)
  }

  /** Gives all back, now: who gets the last response counts what it keeps of it. */
  end(): void {
    this.#charge(-this.#bytes)
    this.#hasEnded = true
  }

  #add({ buffer, byteOffset, byteLength }: Uint8Array, bytes: number): HeldRange {
    const range = {
      memory: buffer,
      begin: byteOffset,
      end: byteOffset + byteLength,
      bytes,
      uses: 1,
    }
    const ranges = this.#ranges.get(buffer)
    if (ranges === undefined) this.#ranges.set(buffer, [range])
    else ranges.push(range)
    return range
  }

  #charge(bytes: number): void {
    if (bytes === 0 || this.#hasEnded) return
    this.#count.charge(bytes)
    this.#bytes += bytes
  }
}
