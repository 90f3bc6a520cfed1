import { backoffMs, sleep } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import type { FetchContext } from './fetch-options.ts'

/** A failure that may pass. */
export class TransientFailure extends Error {
  /** What it amounts to if no further attempt follows. */
  readonly failure: ServeError
  /** As the server wishes. */
  readonly retryAfterMs: number

  constructor(failure: ServeError, retryAfterMs = 0) {
    super(failure.message, { cause: failure })
    this.failure = failure
    this.retryAfterMs = retryAfterMs
  }
}

const FIRST_MS = 250
const LONGEST_MS = 15_000
/** A server may ask for more, but nobody would wait longer for a pod. */
const LONGEST_WISH_MS = 60_000

/**
 * Calls `attempt` again while it fails in passing. Only attempts in a row that bring nothing count: a large model over a bad line
 * comes in the end.
 *
 * @param attempt - calls `moved` for every piece of news.
 * @throws ServeError, that of the last attempt.
 */
export async function persist<T>(
  o: Pick<FetchContext, 'bounds' | 'clock' | 'signal' | 'random' | 'retrying'>,
  attempt: (moved: () => void) => Promise<T>,
): Promise<T> {
  let failures = 0
  for (;;) {
    let hasMoved = false
    try {
      return await attempt(() => {
        hasMoved = true
      })
    } catch (thrown) {
      if (!(thrown instanceof TransientFailure)) throw thrown
      failures = hasMoved ? 1 : failures + 1
      if (failures >= o.bounds.attempts) throw thrown.failure
      const own = backoffMs(failures - 1, {
        firstMs: FIRST_MS,
        longestMs: LONGEST_MS,
        ...(o.random !== undefined && { random: o.random }),
      })
      const delayMs = Math.max(own, Math.min(thrown.retryAfterMs, LONGEST_WISH_MS))
      o.retrying?.({ error: thrown.message, delayMs })
      await sleep(delayMs, o)
    }
  }
}
