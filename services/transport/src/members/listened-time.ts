/** Milliseconds between two ticks, if the machine is not busy: the precision of all longer times here. */
export const TICK_MS = 100
/** A time between two ticks counts up to so many of them. One that takes longer says that the process did not run meanwhile. */
const LATE_TICKS = 2

/**
 * The time in which this process has listened to others, by which their silence is measured. While this process stood still or
 * hardly ran, messages of others may lie unread, and members on the same busy machine ran no better.
 */
export class ListenedTime {
  #listenedMs = 0
  #tickedAt: number | undefined
  #missedMs = 0

  /** Milliseconds between the last two ticks in which it did not listen. */
  get missedMs(): number {
    return this.#missedMs
  }

  /** Counts the time since the last tick. @returns milliseconds listened since the first. */
  tick(now: number): number {
    const passedMs = now - (this.#tickedAt ?? now)
    this.#missedMs = Math.max(0, passedMs - LATE_TICKS * TICK_MS)
    this.#listenedMs += passedMs - this.#missedMs
    this.#tickedAt = now
    return this.#listenedMs
  }
}
