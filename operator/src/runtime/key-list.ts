/** Keys in the order in which they came, first in, first out, with both ends in constant time. */
export class KeyList {
  #keys: string[] = []
  #first = 0

  push(key: string): void {
    this.#keys.push(key)
  }

  shift(): string | undefined {
    const key = this.#keys[this.#first]
    if (key === undefined) return undefined
    this.#first += 1
    // What was taken is dropped in one go, once it is the larger part: that is constant time for each key.
    if (this.#first > 1024 && this.#first * 2 > this.#keys.length) {
      this.#keys = this.#keys.slice(this.#first)
      this.#first = 0
    }
    return key
  }

  clear(): void {
    this.#keys = []
    this.#first = 0
  }
}
