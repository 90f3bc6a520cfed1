import type { Clock } from '@tutti/chassis'

export interface LimitOptions {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Each of them ends it too, with its own reason. */
  readonly signals: readonly AbortSignal[]
  /** Why it ends when the time is over. */
  readonly toError: () => Error
}

/** Begins to count time; `signal` aborts once it is over, or one of `signals` aborts. To be closed. */
export function openLimit({ clock, timeoutMs, signals, toError }: LimitOptions): {
  readonly signal: AbortSignal
  close(): void
} {
  const limit = new AbortController()
  const stopTimer = clock.setTimer(timeoutMs, () => limit.abort(toError()))
  const ends = signals.map((signal) => {
    const onAbort = (): void => limit.abort(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    return () => signal.removeEventListener('abort', onAbort)
  })
  return {
    signal: limit.signal,
    close: () => {
      stopTimer()
      for (const end of ends) end()
    },
  }
}
