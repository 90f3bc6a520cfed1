export type ManualClock = ReturnType<typeof createManualClock>

interface ManualTimer {
  readonly at: number
  readonly callback: () => void
}

/** Makes a clock that stands still until a test moves it. @param o.epochMs - time of the epoch clock at `now() === 0`. */
export function createManualClock(o: { readonly epochMs?: number } = {}) {
  const startMs = o.epochMs ?? 1_700_000_000_000
  const timers = new Set<ManualTimer>()
  let now = 0
  return {
    now: () => now,
    epochMs: () => startMs + now,
    setTimer: (delayMs: number, callback: () => void): (() => void) => {
      const timer = { at: now + Math.max(0, delayMs), callback }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    /**
     * Moves the clock on by `ms` and fires the timers that fall due, in order of time. Timers that these set within `ms` fire
     * too.
     */
    advance: (ms: number): void => {
      const end = now + ms
      for (let next = earliest(timers, end); next !== undefined; next = earliest(timers, end)) {
        timers.delete(next)
        now = next.at
        next.callback()
      }
      now = end
    },
    /** Milliseconds until the next timer is due; undefined if none waits. */
    get nextMs(): number | undefined {
      const next = earliest(timers, Number.POSITIVE_INFINITY)
      return next && next.at - now
    },
    /** Number of timers that wait. */
    get pending() {
      return timers.size
    },
  }
}

/** A Set keeps insertion order, so timers for the same moment fire in the order in which they were set. */
function earliest(timers: ReadonlySet<ManualTimer>, end: number): ManualTimer | undefined {
  let found: ManualTimer | undefined
  for (const timer of timers) {
    if (timer.at <= end && (found === undefined || timer.at < found.at)) found = timer
  }
  return found
}
