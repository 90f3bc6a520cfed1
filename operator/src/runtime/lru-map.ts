/** A map that holds the entries that were used last; older ones go. */
export class LruMap<V> {
  readonly #entries = new Map<string, V>()
  readonly #most: number

  /** @param most - entries held. */
  constructor(most: number) {
    this.#most = most
  }

  get(key: string): V | undefined {
    const value = this.#entries.get(key)
    if (value === undefined) return undefined
    // A Map keeps the order of insertion: what is used goes to its end.
    this.#entries.delete(key)
    this.#entries.set(key, value)
    return value
  }

  set(key: string, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#most) return
      this.#entries.delete(oldest)
    }
  }
}
