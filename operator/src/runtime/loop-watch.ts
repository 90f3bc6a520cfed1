import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Clock, Logger } from '@tutti/chassis'
import { loopLate } from './log-events.ts'
import type { RuntimeMetrics } from './metrics.ts'

/** A histogram of the time from tick to tick of the event loop since the last reset, in nanoseconds. */
export type TickHistogram = Pick<
  ReturnType<typeof monitorEventLoopDelay>,
  'percentile' | 'max' | 'reset' | 'enable' | 'disable'
>

export interface LoopWatchOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<RuntimeMetrics, 'loopDelay'>
  /** Histogram to read; that of this process's event loop if absent. */
  readonly ticks?: TickHistogram
}

const EVERY_MS = 10_000
/** A loop that is held for ten seconds loses the lease; this is long before. */
const LATE_MS = 200
/** Once is enough; a percentile does not show it. */
const HELD_MS = 1000

/**
 * Measures every 10 s how late the event loop is, and warns if a lease renewal could suffer.
 *
 * @returns a function that ends the measurement.
 */
export function watchLoop(o: LoopWatchOptions): () => void {
  const ticks = o.ticks ?? monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  ticks.enable()
  let stopTimer: (() => void) | undefined
  const schedule = (): void => {
    stopTimer = o.clock.setTimer(EVERY_MS, () => {
      const p99Ms = toDelayMs(ticks.percentile(99))
      const longestMs = toDelayMs(ticks.max)
      ticks.reset()
      o.metrics.loopDelay.set({}, p99Ms / 1000)
      if (p99Ms > LATE_MS || longestMs > HELD_MS) loopLate(o.log, { p99Ms, longestMs })
      schedule()
    })
  }
  schedule()
  return () => {
    stopTimer?.()
    ticks.disable()
  }
}

const RESOLUTION_MS = 20

/** Converts a measured time to a delay. The monitor measures from tick to tick, and has no value before the first. */
function toDelayMs(nanoseconds: number): number {
  return Math.round(Math.max(0, (nanoseconds || 0) / 1e6 - RESOLUTION_MS))
}
