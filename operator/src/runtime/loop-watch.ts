import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Clock, Logger } from '@tutti/chassis'
import { loopLate } from './log-events.ts'
import type { RuntimeMetrics } from './metrics.ts'

/** How late the event loop was since the last reset. */
export interface LoopDelay {
  /** 99th percentile, milliseconds. */
  p99Ms(): number
  /** The longest, milliseconds. */
  longestMs(): number
  reset(): void
  close(): void
}

export interface LoopWatchOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics: Pick<RuntimeMetrics, 'loopDelay'>
  /** The process's own if absent. */
  readonly delay?: LoopDelay
}

const EVERY_MS = 10_000
/** A loop that is held for ten seconds loses the lease; this is long before. */
const LATE_MS = 200
/** Once is enough; a percentile does not show it. */
const HELD_MS = 1000

/** Watches the event loop: reconciles share it with the renewal of the lease. @returns ends it. */
export function watchLoop(o: LoopWatchOptions): () => void {
  const delay = o.delay ?? processDelay()
  let stopTimer: (() => void) | undefined
  const schedule = (): void => {
    stopTimer = o.clock.setTimer(EVERY_MS, () => {
      const p99Ms = Math.round(delay.p99Ms())
      const longestMs = Math.round(delay.longestMs())
      delay.reset()
      o.metrics.loopDelay.set({}, p99Ms / 1000)
      if (p99Ms > LATE_MS || longestMs > HELD_MS) loopLate(o.log, { p99Ms, longestMs })
      schedule()
    })
  }
  schedule()
  return () => {
    stopTimer?.()
    delay.close()
  }
}

const RESOLUTION_MS = 20

function processDelay(): LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  return {
    p99Ms: () => toDelayMs(histogram.percentile(99)),
    longestMs: () => toDelayMs(histogram.max),
    reset: () => histogram.reset(),
    close: () => void histogram.disable(),
  }
}

/** It measures from tick to tick, and is none before the first. */
function toDelayMs(nanoseconds: number): number {
  return Math.max(0, (nanoseconds || 0) / 1e6 - RESOLUTION_MS)
}
