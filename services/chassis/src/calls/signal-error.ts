import { type CancelSignal, ServeError } from '@tutti/errors'

/**
 * Converts the reason of an aborted signal to a ServeError. A plain abort becomes CANCELLED, a timeout of `AbortSignal.timeout`
 * becomes DEADLINE_EXCEEDED.
 */
export function signalError(signal: CancelSignal): ServeError {
  const reason: unknown = signal.reason
  if (reason instanceof DOMException && reason.name === 'TimeoutError') {
    return new ServeError('DEADLINE_EXCEEDED', 'deadline exceeded', { cause: reason })
  }
  if (reason === undefined || (reason instanceof DOMException && reason.name === 'AbortError')) {
    return new ServeError('CANCELLED', 'the call was cancelled', { cause: reason })
  }
  return ServeError.from(reason)
}

/** Makes the DEADLINE_EXCEEDED error of work whose time is over. Its text names the limit and its length in milliseconds. */
export function deadlineError({
  remainingMs = 0,
  limitName = 'deadline',
}: {
  readonly remainingMs?: number | undefined
  readonly limitName?: string
}): ServeError {
  const limit = Math.max(0, Math.round(remainingMs))
  return new ServeError('DEADLINE_EXCEEDED', `${limitName} of ${limit} ms exceeded`)
}

/**
 * Waits for a promise or for the signal, whichever comes first. An abandoned promise's later rejection is dropped: the
 * caller was answered with the signal's reason already.
 *
 * @throws ServeError, the signal's reason, at once if it has aborted.
 */
export function raceSignal<T>(promise: Promise<T>, signal: CancelSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signalError(signal))
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
    if (signal.aborted) onAbort()
  })
}
