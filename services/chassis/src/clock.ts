/** Time as a parameter, so that tests drive it. */
export interface Clock {
  /** Monotonic milliseconds with a fraction; only differences mean something. */
  now(): number
  /** Milliseconds since the epoch, for what people and protocols read. */
  epochMs(): number
  /** Calls `callback` once after `delayMs`; the returned function cancels it. */
  setTimer(delayMs: number, callback: () => void): () => void
}

const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => performance.now(),
  epochMs: () => Date.now(),
  setTimer: (delayMs, callback) => {
    // Node fires at once above 2^31 - 1 ms; such a timer is as good as never.
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
}
