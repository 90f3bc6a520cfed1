/** A key with the moment at which it falls due, on the clock of whoever keeps the heap. */
export interface DelayedKey {
  readonly key: string
  readonly at: number
}

/** A binary heap of delayed keys, the earliest first. One key may be in it more than once; its owner knows which one counts. */
export class DelayHeap {
  readonly #entries: DelayedKey[] = []

  /** Entries in the heap, those that no longer count included. */
  get size(): number {
    return this.#entries.length
  }

  peek(): DelayedKey | undefined {
    return this.#entries[0]
  }

  push(entry: DelayedKey): void {
    const entries = this.#entries
    let at = entries.length
    entries.push(entry)
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = entries[above]
      if (parent === undefined || parent.at <= entry.at) break
      entries[at] = parent
      at = above
    }
    entries[at] = entry
  }

  pop(): DelayedKey | undefined {
    const top = this.#entries[0]
    const last = this.#entries.pop()
    if (last !== undefined && this.#entries.length > 0) this.#sink(last)
    return top
  }

  clear(): void {
    this.#entries.length = 0
  }

  /** Puts `entry` where the top was, and lets it go down to its place. */
  #sink(entry: DelayedKey): void {
    const entries = this.#entries
    let at = 0
    for (;;) {
      const left = 2 * at + 1
      const right = entries[left + 1]
      let below = entries[left]
      let next = left
      if (below !== undefined && right !== undefined && right.at < below.at) {
        below = right
        next = left + 1
      }
      if (below === undefined || below.at >= entry.at) break
      entries[at] = below
      at = next
    }
    entries[at] = entry
  }
}
