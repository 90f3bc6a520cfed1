/** Percent of a call that a further one takes from the budget. */
const COST = 100
/** Most that is saved up: ten further calls, however many there were before. */
const MOST = 10 * COST

/** Bounds the further calls of one step, over all its requests in this router, to a share of its calls. */
export class CallBudget {
  readonly #percent: number
  readonly #perSecond: number
  #left: number
  #refilledAt = 0

  /**
   * @param o.percent - what each call of the step adds, in percent of a call.
   * @param o.reserve - further calls that are allowed from the start.
   * @param o.perSecond - further calls that each second allows, for steps that are called rarely. Default none.
   */
  constructor(o: {
    readonly percent: number
    readonly reserve: number
    readonly perSecond?: number
  }) {
    this.#percent = o.percent
    this.#left = o.reserve * COST
    this.#perSecond = o.perSecond ?? 0
  }

  /** Counts a call of the step. */
  called(): void {
    this.#left = Math.min(MOST, this.#left + this.#percent)
  }

  /** Takes a further call. @param now - in milliseconds, by the monotonic clock. @returns false if none is allowed. */
  take(now: number): boolean {
    if (this.#perSecond > 0) {
      const saved = ((now - this.#refilledAt) / 1000) * this.#perSecond * COST
      this.#refilledAt = now
      this.#left = Math.min(MOST, this.#left + saved)
    }
    if (this.#left < COST) return false
    this.#left -= COST
    return true
  }
}
