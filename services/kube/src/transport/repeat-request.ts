import { backoffMs, type Clock, sleep } from '@tutti/chassis'
import { KubeError } from '../kube-error.ts'
import type { TransportRequest } from './transport.ts'

/** How often a request is sent in all. */
const MOST_TRIES = 3
const FIRST_WAIT_MS = 200
/** A longer wait than this goes to the caller as an error. */
const LONGEST_WAIT_MS = 10_000

export interface RepeatOptions {
  readonly clock: Clock
  readonly random?: () => number
  /** Reports that the server refused the credentials. */
  readonly onRefused: () => void
  /** Tells whether the transport is closed, so that nothing more is sent. */
  readonly isClosed: () => boolean
}

/**
 * Sends a request, and repeats it once after refused credentials. An idempotent request is sent up to three times after 429, 503
 * or a lost connection.
 *
 * @throws the error of the last try.
 */
export async function repeatRequest<T>(
  request: TransportRequest,
  send: () => Promise<T>,
  o: RepeatOptions,
): Promise<T> {
  let isRefreshed = false
  for (let failures = 0; ; ) {
    try {
      return await send()
    } catch (error) {
      if (!(error instanceof KubeError) || o.isClosed()) throw error
      if (error.status === 401 && !isRefreshed) {
        isRefreshed = true
        o.onRefused()
        continue
      }
      failures += 1
      const waitMs = waitBefore(failures, { request, error, random: o.random })
      if (waitMs === undefined) throw error
      await sleep(waitMs, { clock: o.clock, ...(request.signal && { signal: request.signal }) })
    }
  }
}

/** Returns the wait before a request is sent again; undefined: never. */
function waitBefore(
  failures: number,
  o: {
    readonly request: TransportRequest
    readonly error: KubeError
    readonly random: (() => number) | undefined
  },
): number | undefined {
  const { request, error, random } = o
  const { method, isIdempotent = method === 'GET' } = request
  if (failures >= MOST_TRIES || !isIdempotent) return undefined
  const isRepeatable =
    error.status === 429 || error.status === 503 || error.reason === 'NoConnection'
  if (!isRepeatable) return undefined
  const waitMs =
    error.retryAfterMs ??
    backoffMs(failures - 1, {
      firstMs: FIRST_WAIT_MS,
      longestMs: LONGEST_WAIT_MS,
      ...(random && { random }),
    })
  return waitMs > LONGEST_WAIT_MS ? undefined : waitMs
}
