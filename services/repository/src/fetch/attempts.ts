import { backoffMs, sleep } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import type { FetchContext } from './fetch-options.ts'

/** A failure that may pass with time. */
export class TransientFailure extends Error {
  /** What the caller gets if no further attempt follows. */
  readonly failure: ServeError
  /** As the server asks for. */
  readonly retryAfterMs: number

  constructor(failure: ServeError, retryAfterMs = 0) {
    super(failure.message, { cause: failure })
    this.failure = failure
    this.retryAfterMs = retryAfterMs
  }
}

const FIRST_MS = 250
const LONGEST_MS = 15_000
/** A server may ask for more, but a pod that starts should not wait longer. */
const LONGEST_RETRY_AFTER_MS = 60_000

/**
 * Calls `attempt` again after each transient failure. Only consecutive attempts without progress count, so that a large model comes
 * through a bad line.
 *
 * @param attempt - calls `progress` for every piece that it got.
 * @throws ServeError of the last attempt.
 */
export async function persist<T>(
  o: Pick<FetchContext, 'bounds' | 'clock' | 'signal' | 'random' | 'log'>,
  attempt: (progress: () => void) => Promise<T>,
): Promise<T> {
  let failures = 0
  for (;;) {
    let hasProgress = false
    try {
      return await attempt(() => {
        hasProgress = true
      })
    } catch (error) {
      if (!(error instanceof TransientFailure)) throw error
      failures = hasProgress ? 1 : failures + 1
      if (failures >= o.bounds.attempts) throw error.failure
      const { random = Math.random } = o
      const backoff = backoffMs(failures - 1, { firstMs: FIRST_MS, longestMs: LONGEST_MS, random })
      const delayMs = Math.max(backoff, Math.min(error.retryAfterMs, LONGEST_RETRY_AFTER_MS))
      o.log.warn('fetch failed, trying again', { error: error.message, delayMs })
      await sleep(delayMs, o)
    }
  }
}
