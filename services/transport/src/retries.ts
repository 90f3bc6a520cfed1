import { type Clock, signalError, sleep } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Executed, ResponseSink, StepTimes } from '@tutti/tensor'

/** An attempt that failed. */
export interface FailedAttempt {
  readonly error: ServeError
  readonly executed: Executed
  readonly times: StepTimes | undefined
  /** Whether a response of the attempt has been passed on. */
  readonly hasResponded: boolean
  /** Counts from 1. */
  readonly tries: number
}

export interface RetryOptions {
  /** Decides whether to try again. @returns milliseconds to wait before; undefined for no further attempt. */
  delayMs(failed: FailedAttempt): number | undefined
  /** Begins the next attempt. It does not throw. */
  again(): void
  readonly clock: Clock
  readonly signal: CancelSignal
}

/**
 * Follows a failed attempt with another where that is allowed, at once or later; else `sink` gets the failure. A caller that is
 * gone gets no further attempt: what it lent may be back in use. Never throws.
 */
export function retryOrFail(
  failed: FailedAttempt,
  o: RetryOptions,
  sink: Pick<ResponseSink, 'fail'>,
): void {
  const delayMs = o.delayMs(failed)
  if (delayMs === undefined) fail(failed, failed.error, sink)
  else if (o.signal.aborted) fail(failed, signalError(o.signal), sink)
  else if (delayMs > 0) void retryIn(delayMs, failed, o, sink)
  else o.again()
}

async function retryIn(
  delayMs: number,
  failed: FailedAttempt,
  o: RetryOptions,
  sink: Pick<ResponseSink, 'fail'>,
): Promise<void> {
  try {
    await sleep(delayMs, { clock: o.clock, signal: o.signal })
  } catch (error) {
    fail(failed, ServeError.from(error), sink)
    return
  }
  // Another timer of the same moment may have ended the call.
  if (o.signal.aborted) fail(failed, signalError(o.signal), sink)
  else o.again()
}

function fail(
  { tries, executed, times }: FailedAttempt,
  error: ServeError,
  sink: Pick<ResponseSink, 'fail'>,
): void {
  const located = tries === 1 ? error : error.withDetails({ attempt: String(tries) }).afterRetries()
  sink.fail(located, executed, times)
}
