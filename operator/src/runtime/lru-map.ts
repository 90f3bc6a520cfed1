/** A map that holds the entries that were used last; older ones go. */
export class LruMap<V> {
  readonly #entries = new Map<string, V>()
  readonly #most: number
  readonly #onDropped: (value: V) => void

  /** @param most - entries held. @param onDropped - called with what had to go. */
  constructor(most: number, onDropped: (value: V) => void = () => {}) {
    this.#most = most
    this.#onDropped = onDropped
  }

  get size(): number {
    return this.#entries.size
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
    if (this.#entries.size <= this.#most) return
    const [oldest] = this.#entries
    if (oldest === undefined) return
    this.#entries.delete(oldest[0])
    this.#onDropped(oldest[1])
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  entries(): Iterable<readonly [string, V]> {
    return this.#entries
  }
}
