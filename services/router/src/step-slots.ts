/**
 * Bounds how many requests to one step of one ensemble are open at the same time (`max_inflight_requests`, triton-semantics
 * 1.10), over all requests of the ensemble. First come, first served.
 */
export class StepSlots {
  #free: number
  readonly #waiting = new Set<() => void>()

  /** @param limit - 0 means no bound. */
  constructor(limit: number) {
    this.#free = limit === 0 ? Number.POSITIVE_INFINITY : limit
  }

  /**
   * Calls `onSlot` once a slot is taken, at once if one is free.
   * @returns leaves the line; without effect once the slot is taken.
   */
  acquire(onSlot: () => void): () => void {
    if (this.#free > 0) {
      this.#free -= 1
      onSlot()
      return () => {}
    }
    // A wrapper of its own, so that the same callback may stand in line twice.
    const waiter = (): void => onSlot()
    this.#waiting.add(waiter)
    return () => this.#waiting.delete(waiter)
  }

  /** Takes a slot even if none is free, for who must not wait for those that have one. */
  take(): void {
    this.#free -= 1
  }

  release(): void {
    const next = this.#waiting.values().next().value
    if (next === undefined || this.#free < 0) {
      this.#free += 1
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
