/** Bounds how often something happens: so many at once, and so many more each second. */
export class TokenBucket {
  readonly #burst: number
  readonly #perSecond: number
  readonly #now: () => number
  #left: number
  #at: number

  /** @param now - in milliseconds. */
  constructor(o: { readonly burst: number; readonly perSecond: number }, now: () => number) {
    this.#burst = o.burst
    this.#perSecond = o.perSecond
    this.#now = now
    this.#left = o.burst
    this.#at = now()
  }

  /** False if there were not so many left. */
  take(count = 1): boolean {
    // The clock is asked only where it matters.
    if (this.#left < count) {
      const now = this.#now()
      const come = ((now - this.#at) * this.#perSecond) / 1000
      this.#left = Math.min(this.#burst, Math.max(0, this.#left) + come)
      this.#at = now
    }
    this.#left -= count
    return this.#left >= 0
  }

  /** Gives some back, parts of one too, for what shows that it is worth it. */
  give(count: number): void {
    this.#left = Math.min(this.#burst, this.#left + count)
  }
}
