const SMALLEST_BYTES = 4096
const LARGE_STEP_BYTES = 1024 * 1024

/** Powers of two up to 1 MiB, then whole MiB, so that a slot fits requests of nearly the same size again. */
function roundSize(size: number): number {
  if (size > LARGE_STEP_BYTES) return Math.ceil(size / LARGE_STEP_BYTES) * LARGE_STEP_BYTES
  let rounded = SMALLEST_BYTES
  while (rounded < size) rounded *= 2
  return rounded
}

/**
 * Keeps slots for reuse: a fresh 786 KB buffer costs page faults of up to 400 us each time. What is kept is bounded in
 * bytes; beyond that slots are left to the collector.
 */
export class SlotPool {
  readonly #maxBytes: number
  #bytes = 0
  readonly #free = new Map<number, ArrayBuffer[]>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes of the slots that wait for reuse. */
  get bytes(): number {
    return this.#bytes
  }

  /** A slot of at least `size` bytes, with whatever it held before. */
  take(size: number): ArrayBuffer {
    const rounded = roundSize(size)
    const slot = this.#free.get(rounded)?.pop()
    if (slot === undefined) return new ArrayBuffer(rounded)
    this.#bytes -= rounded
    return slot
  }

  give(slot: ArrayBuffer): void {
    const size = slot.byteLength
    if (size !== roundSize(size) || this.#bytes + size > this.#maxBytes) return
    const free = this.#free.get(size)
    if (free === undefined) this.#free.set(size, [slot])
    else free.push(slot)
    this.#bytes += size
  }
}
