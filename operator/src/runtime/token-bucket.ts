import type { Clock } from '@tutti/chassis'

/** So many at once, then one more each interval. */
export class TokenBucket {
  readonly #clock: Pick<Clock, 'now'>
  readonly #size: number
  readonly #everyMs: number
  #left: number
  #filledAt: number

  constructor(o: {
    readonly clock: Pick<Clock, 'now'>
    readonly size: number
    readonly everyMs: number
  }) {
    this.#clock = o.clock
    this.#size = o.size
    this.#everyMs = o.everyMs
    this.#left = o.size
    this.#filledAt = o.clock.now()
  }

  /** Takes one. @returns false if none is left. */
  take(): boolean {
    const now = this.#clock.now()
    this.#left = Math.min(this.#size, this.#left + (now - this.#filledAt) / this.#everyMs)
    this.#filledAt = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
