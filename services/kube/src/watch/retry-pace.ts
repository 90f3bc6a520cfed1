import { backoffMs } from '@tutti/chassis'
import { KubeError } from '../kube-error.ts'

/**
 * Wait before the first retry. As in client-go, retries are quick at first, for a server that has just restarted, and then rare.
 */
const FIRST_WAIT_MS = 800
const LONGEST_WAIT_MS = 30_000
/** Time without a failure after which the next failure counts as the first. */
const HEALTHY_MS = 120_000
/** Longest wait that a server may ask for; it may be longer than ours. */
const LONGEST_ASKED_MS = 60_000

/** Computes the wait before the next try after consecutive failures. */
export interface RetryPace {
  /** Number of failures since the last time without failures. */
  readonly failures: number
  /** Counts a failure. @returns milliseconds to wait. */
  fail(error: unknown, nowMs: number): number
}

export function createRetryPace(random: () => number = Math.random): RetryPace {
  let failures = 0
  let healthyFromMs = Number.NEGATIVE_INFINITY
  return {
    get failures() {
      return failures
    },
    fail: (error, nowMs) => {
      if (nowMs - healthyFromMs > HEALTHY_MS) failures = 0
      const ownMs = backoffMs(failures, {
        firstMs: FIRST_WAIT_MS,
        longestMs: LONGEST_WAIT_MS,
        random,
      })
      failures += 1
      const askedMs = error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0
      // Those whom a server sends away together do not come back together.
      const waitMs = Math.max(ownMs, Math.min(askedMs, LONGEST_ASKED_MS) * (1 + random() / 5))
      healthyFromMs = nowMs + waitMs
      return waitMs
    },
  }
}
