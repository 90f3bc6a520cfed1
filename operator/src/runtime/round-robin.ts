/** Items that wait, by key: first in, first out within a key, and the keys take turns. Nothing is kept of a key without items. */
export class RoundRobin<T> {
  /** The key whose turn it is comes first. */
  readonly #lines = new Map<string, Set<T>>()

  /** Puts an item behind the others of its key. */
  add(key: string, item: T): void {
    const line = this.#lines.get(key)
    if (line === undefined) this.#lines.set(key, new Set([item]))
    else line.add(item)
  }

  /** @returns false if it did not wait. */
  delete(key: string, item: T): boolean {
    const line = this.#lines.get(key)
    if (line?.delete(item) !== true) return false
    if (line.size === 0) this.#lines.delete(key)
    return true
  }

  /** Takes the next item out, of the keys that `mayTake` allows; the turn of its key is over. */
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
