import type { Clock } from '../calls/call-context.ts'

/** Rate at which log lines may come. */
export interface LogLimit {
  readonly clock: Pick<Clock, 'now'>
  /** Lines that may come at once; default 100, enough for every replica of a large installation to restart. */
  readonly lines?: number
  /** Milliseconds until one more line may come; default 1000. */
  readonly everyMs?: number
}

/** Lets a bounded number of lines through and says how many it dropped. */
export class LineBudget {
  readonly #clock: Pick<Clock, 'now'>
  readonly #most: number
  readonly #everyMs: number
  #left: number
  #filledAt: number
  #dropped = 0

  constructor({ clock, lines = 100, everyMs = 1000 }: LogLimit) {
    this.#clock = clock
    this.#most = lines
    this.#everyMs = everyMs
    this.#left = lines
    this.#filledAt = clock.now()
  }

  /** Checks whether a line may pass now, and takes nothing from the budget. */
  hasCapacity(): boolean {
    const now = this.#clock.now()
    this.#left = Math.min(this.#most, this.#left + (now - this.#filledAt) / this.#everyMs)
    this.#filledAt = now
    return this.#left >= 1
  }

  /** Counts lines that did not pass. */
  drop(lines: number): void {
    this.#dropped += lines
  }

  /**
   * Takes a line from the budget.
   *
   * @returns undefined if the budget is used up, else the number of lines dropped since the last one.
   */
  take(): number | undefined {
    if (!this.hasCapacity()) {
      this.drop(1)
      return undefined
    }
    this.#left -= 1
    const dropped = this.#dropped
    this.#dropped = 0
    return dropped
  }
}
