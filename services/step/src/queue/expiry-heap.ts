import type { QueueEntry } from './entry-list.ts'

/**
 * Waiting requests by the moment that their queue timeout strikes, the earliest first.
 * A request that leaves the queue leaves the heap at once: a heap that forgets lazily would hold its tensors until the timeout.
 */
export class ExpiryHeap<T> {
  readonly #entries: QueueEntry<T>[] = []

  /** Infinity if nothing expires. */
  get earliest(): number {
    return this.#entries[0]?.expiresAt ?? Number.POSITIVE_INFINITY
  }

  get first(): QueueEntry<T> | undefined {
    return this.#entries[0]
  }

  add(entry: QueueEntry<T>): void {
    this.#rise(entry, this.#entries.length)
  }

  /** No effect if the entry is not in the heap. */
  remove(entry: QueueEntry<T>): void {
    const index = entry.heapIndex
    if (index < 0) return
    entry.heapIndex = -1
    const moved = this.#entries.pop()
    if (moved === undefined || moved === entry) return
    const parent = this.#entries[(index - 1) >> 1]
    if (index > 0 && parent !== undefined && parent.expiresAt > moved.expiresAt) {
      this.#rise(moved, index)
    } else {
      this.#sink(moved, index)
    }
  }

  #place(entry: QueueEntry<T>, index: number): void {
    this.#entries[index] = entry
    entry.heapIndex = index
  }

  #rise(entry: QueueEntry<T>, from: number): void {
    let index = from
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = this.#entries[parentIndex]
      if (parent === undefined || parent.expiresAt <= entry.expiresAt) break
      this.#place(parent, index)
      index = parentIndex
    }
    this.#place(entry, index)
  }

  #sink(entry: QueueEntry<T>, from: number): void {
    let index = from
    for (;;) {
      const childIndex = this.#smallerChild(index)
      const child = this.#entries[childIndex]
      if (child === undefined || child.expiresAt >= entry.expiresAt) break
      this.#place(child, index)
      index = childIndex
    }
    this.#place(entry, index)
  }

  #smallerChild(index: number): number {
    const left = 2 * index + 1
    const a = this.#entries[left]
    const b = this.#entries[left + 1]
    return a !== undefined && b !== undefined && b.expiresAt < a.expiresAt ? left + 1 : left
  }
}
