import type { CancelSignal } from '@tutti/errors'
import type { Clock } from './call-context.ts'
import { signalError } from './signal-error.ts'

export interface BackoffOptions {
  /** Longest wait before the first repetition. */
  readonly firstMs: number
  /** No wait is longer. */
  readonly longestMs: number
  /** From 0 up to 1, not 1; Math.random if absent. */
  readonly random?: () => number
}

/**
 * How long to wait before a repetition: doubling, with the upper half drawn at random, so that many who failed together
 * do not come back together.
 *
 * @param attempt - 0 for the first repetition.
 * @returns from half of min(firstMs x 2^attempt, longestMs) up to all of it.
 */
export function backoffMs(attempt: number, o: BackoffOptions): number {
  const ceiling = Math.min(o.longestMs, o.firstMs * 2 ** attempt)
  return (ceiling / 2) * (1 + (o.random ?? Math.random)())
}

/** @throws ServeError, the signal's reason, as soon as it aborts; the timer is taken back then. */
export function sleep(
  delayMs: number,
  o: { readonly clock: Clock; readonly signal?: CancelSignal },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const { signal } = o
    if (signal?.aborted) {
      reject(signalError(signal))
      return
    }
    const stopTimer = o.clock.setTimer(delayMs, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    const onAbort = (): void => {
      stopTimer()
      if (signal !== undefined) reject(signalError(signal))
    }
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
