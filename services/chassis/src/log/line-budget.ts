import type { Clock } from '../calls/call-context.ts'

/** How many log lines may come. */
export interface LogLimit {
  readonly clock: Pick<Clock, 'now'>
  /** Lines that may come at once; default 100: every replica of a large installation that restarts. */
  readonly lines?: number
  /** Milliseconds until one more may come; default 1000. */
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

  /** Whether a line may pass now. */
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

  /** @returns undefined if the line is too much, else how many were dropped since the last one. */
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
