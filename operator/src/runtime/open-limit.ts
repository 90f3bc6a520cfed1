import type { Clock } from '@tutti/chassis'

export interface LimitOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Ends it too, with its own reason. */
  readonly signal: AbortSignal
  /** Why it ends when the time is over. */
  readonly toError: () => Error
}

/** Begins to count time; its signal aborts once it is over, or `signal` aborts. To be closed. */
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
