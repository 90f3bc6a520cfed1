/** Bounds how often something happens: `burst` times at once, then `perSecond` times each second. */
export class TokenBucket {
  readonly #burst: number
  readonly #perSecond: number
  readonly #now: () => number
  #left: number
  #at: number

  /** Makes a full bucket. @param now - clock in milliseconds. */
  constructor(o: { readonly burst: number; readonly perSecond: number }, now: () => number) {
    this.#burst = o.burst
    this.#perSecond = o.perSecond
    this.#now = now
    this.#left = o.burst
    this.#at = now()
  }

  /** Takes tokens from the bucket. @returns false if fewer were left. */
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

  /** Adds tokens, also a fraction of one, up to the burst. */
  give(count: number): void {
    this.#left = Math.min(this.#burst, this.#left + count)
  }
}
