/**
 * Most pieces that do not touch. More are no sensible order of arrival; the bound limits what a hostile sender makes a member
 * keep.
 */
const MOST_RANGES = 1024

/** The bytes of a transfer that have arrived, as sorted ranges that neither touch nor overlap. */
export class ByteRanges {
  /** start, end, start, end, ... */
  readonly #edges: number[] = []
  #count = 0

  /** Bytes in all ranges. */
  get count(): number {
    return this.#count
  }

  /** The first byte that has not arrived. */
  get firstGap(): number {
    return this.#edges[0] === 0 ? (this.#edges[1] ?? 0) : 0
  }

  /** True if a byte from `start` up to `end` has not arrived. */
  lacks(start: number, end: number): boolean {
    const edges = this.#edges
    // Ranges do not touch, so only one of them can hold it all.
    for (let i = 0; i < edges.length; i += 2) {
      if ((edges[i] ?? 0) <= start && end <= (edges[i + 1] ?? 0)) return false
    }
    return true
  }

  /** Adds the bytes from `start` up to `end`. @returns false if all were there already, or there are too many pieces. */
  add(start: number, end: number): boolean {
    const edges = this.#edges
    let first = 0
    while (first < edges.length && (edges[first + 1] ?? 0) < start) first += 2
    let last = first
    let from = start
    let to = end
    let known = 0
    while (last < edges.length && (edges[last] ?? 0) <= end) {
      const left = edges[last] ?? 0
      const right = edges[last + 1] ?? 0
      from = Math.min(from, left)
      to = Math.max(to, right)
      known += right - left
      last += 2
    }
    if (to - from === known) return false
    if (last === first && edges.length >= 2 * MOST_RANGES) return false
    edges.splice(first, last - first, from, to)
    this.#count += to - from - known
    return true
  }
}
