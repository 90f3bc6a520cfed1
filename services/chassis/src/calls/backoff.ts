import type { CancelSignal } from '@tutti/errors'
import type { Clock } from './call-context.ts'
import { signalError } from './signal-error.ts'

export interface BackoffOptions {
  /** Longest wait before the first repetition. */
  readonly firstMs: number
  /** Upper bound of every wait, in milliseconds. */
  readonly longestMs: number
  /** Function that draws a number from 0 up to, but not including, 1; Math.random if absent. */
  readonly random?: () => number
}

/**
 * Computes how long to wait before a repetition. The wait doubles with each attempt. Its upper half is random, so that many
 * clients that failed together do not return together.
 *
 * @param attempt - 0 for the first repetition.
 * @returns milliseconds, from half of min(firstMs x 2^attempt, longestMs) up to all of it.
 */
export function backoffMs(attempt: number, o: BackoffOptions): number {
  const ceiling = Math.min(o.longestMs, o.firstMs * 2 ** attempt)
  return (ceiling / 2) * (1 + (o.random ?? Math.random)())
}

/** Waits for `delayMs` milliseconds. @throws ServeError, the signal's reason, as soon as the signal aborts. */
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
