import type { Clock } from '@tutti/chassis'

export interface LimitOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Signal that ends the limit early. Its reason becomes that of the limit's signal. */
  readonly signal: AbortSignal
  /** Function that makes the abort reason when the time is over. */
  readonly toError: () => Error
}

/** Opens a time limit. Its signal aborts when the time is over or `signal` aborts. The caller must close it. */
export function openLimit({ clock, timeoutMs, signal, toError }: LimitOptions): {
  readonly signal: AbortSignal
  close(): void
} {
  const limit = new AbortController()
  const stopTimer = clock.setTimer(timeoutMs, () => limit.abort(toError()))
  const onAbort = (): void => limit.abort(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  return {
    signal: limit.signal,
    close: () => {
      stopTimer()
      signal.removeEventListener('abort', onAbort)
    },
  }
}
