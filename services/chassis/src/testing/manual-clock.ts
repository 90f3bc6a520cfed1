import type { Clock } from '../call-scope.ts'

/** A clock that stands still until a test moves it. */
export interface ManualClock extends Clock {
  /** Moves on by `ms` and fires what falls due, in order of time; also what such a timer sets within that time. */
  advance(ms: number): void
  /** Number of timers that wait. */
  readonly pending: number
}

interface ManualTimer {
  readonly at: number
  readonly callback: () => void
}

/** Makes a manual clock. @param o.epochMs - what the epoch clock shows at `now() === 0`. */
export function createManualClock(o: { readonly epochMs?: number } = {}): ManualClock {
  const startMs = o.epochMs ?? 1_700_000_000_000
  const timers = new Set<ManualTimer>()
  let now = 0
  return {
    now: () => now,
    epochMs: () => startMs + now,
    setTimer: (delayMs, callback) => {
      const timer = { at: now + Math.max(0, delayMs), callback }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    advance: (ms) => {
      const end = now + ms
      for (let next = earliest(timers, end); next !== undefined; next = earliest(timers, end)) {
        timers.delete(next)
        now = next.at
        next.callback()
      }
      now = end
    },
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
