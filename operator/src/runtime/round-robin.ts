/** A queue of items by key: first in, first out within a key, and the keys take turns. A key without items takes no memory. */
export class RoundRobin<T> {
  /** The key whose turn it is comes first. */
  readonly #lines = new Map<string, Set<T>>()

  /** Puts an item behind the others of its key. */
  add(key: string, item: T): void {
    const line = this.#lines.get(key)
    if (line === undefined) this.#lines.set(key, new Set([item]))
    else line.add(item)
  }

  /** Removes an item. @returns false if the item was not waiting. */
  delete(key: string, item: T): boolean {
    const line = this.#lines.get(key)
    if (line?.delete(item) !== true) return false
    if (line.size === 0) this.#lines.delete(key)
    return true
  }

  /** Takes out the next item among the keys that `mayTake` allows. Its key then waits until the other keys had their turns. */
  take(mayTake: (key: string) => boolean): { readonly key: string; readonly item: T } | undefined {
    for (const [key, line] of this.#lines) {
      if (!mayTake(key)) continue
      this.#lines.delete(key)
      for (const item of line) {
        line.delete(item)
        if (line.size > 0) this.#lines.set(key, line)
        return { key, item }
      }
    }
    return undefined
  }

  clear(): void {
    this.#lines.clear()
  }
}
