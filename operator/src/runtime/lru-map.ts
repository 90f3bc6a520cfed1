/** A map with a bound: when it is full, the entry that was used least recently goes. */
export class LruMap<V> {
  readonly #entries = new Map<string, V>()
  readonly #most: number

  /** Makes an empty map. @param most - number of entries that it holds at most. */
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
