import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { ClientShare } from '../admission/admission-ticket.ts'

/** The bounds on the requests of one identity at one server process. An absent bound is none. */
export interface Quota {
  readonly requestsPerSecond?: number | undefined
  /** Requests that may come at once after a pause; absent: `requestsPerSecond`. */
  readonly burst?: number | undefined
  /** Inference requests that may be in work at the same time. */
  readonly concurrentRequests?: number | undefined
}

/** Time after which a caller with too many open requests may try again; when one of them ends is unknown. */
const CONCURRENT_RETRY_MS = 1000

/** A caller that waits as long as it was told must not miss its request by the last digit. */
const ROUNDING = 1e-6

/** The meter of one identity's quota: a bucket that fills with time, and the requests in work. */
export class QuotaMeter {
  /** May change while requests are in work. */
  quota: Quota
  /** Bytes of the identity's calls that wait for their client. */
  readonly share = new ClientShare()
  readonly #clock: Pick<Clock, 'now'>
  #left: number
  #filledAt: number
  #inWork = 0

  constructor(quota: Quota, clock: Pick<Clock, 'now'>) {
    this.quota = quota
    this.#clock = clock
    this.#left = burstOf(quota)
    this.#filledAt = clock.now()
  }

  /** Why a further request would be refused now; undefined if it would not. */
  get obstacle(): ServeError | undefined {
    return this.#rateObstacle() ?? this.#workObstacle()
  }

  /** Counts one request against the rate. @throws ServeError QUOTA_EXCEEDED without counting it. */
  charge(): void {
    const obstacle = this.#rateObstacle()
    if (obstacle !== undefined) throw obstacle
    this.#left -= 1
  }

  /** Counts a request as in work until `leave`. @throws ServeError QUOTA_EXCEEDED without counting it. */
  enter(): void {
    const obstacle = this.#workObstacle()
    if (obstacle !== undefined) throw obstacle
    this.#inWork += 1
  }

  leave(): void {
    this.#inWork -= 1
  }

  #rateObstacle(): ServeError | undefined {
    const { requestsPerSecond: rate } = this.quota
    if (rate === undefined) return undefined
    const now = this.#clock.now()
    const filled = this.#left + ((now - this.#filledAt) / 1000) * rate
    this.#left = Math.min(burstOf(this.quota), filled)
    this.#filledAt = now
    const missing = 1 - this.#left
    if (missing < ROUNDING) return undefined
    return exceeded(`more than ${rate} requests a second`, Math.round((missing / rate) * 1e6) / 1e3)
  }

  #workObstacle(): ServeError | undefined {
    const { concurrentRequests: most } = this.quota
    if (most === undefined || this.#inWork < most) return undefined
    return exceeded(`more than ${most} requests at the same time`, CONCURRENT_RETRY_MS)
  }
}

function burstOf({ requestsPerSecond = 0, burst = requestsPerSecond }: Quota): number {
  return Math.max(1, burst)
}

function exceeded(what: string, retryAfterMs: number): ServeError {
  const text = `quota of the caller: got ${what}; try again later`
  return new ServeError('QUOTA_EXCEEDED', text, { retryAfterMs })
}

/** The meters of all identities. Rules that are read again keep the meters of those that stay. */
export class QuotaMeters {
  readonly #clock: Pick<Clock, 'now'>
  #meters = new Map<string, QuotaMeter>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Sets all quotas. @param quotas - by keys that tell identities apart; meters of other keys are dropped. */
  replace(quotas: ReadonlyMap<string, Quota | undefined>): void {
    const before = this.#meters
    this.#meters = new Map()
    for (const [key, quota] of quotas) {
      const meter = before.get(key) ?? new QuotaMeter(quota ?? {}, this.#clock)
      meter.quota = quota ?? {}
      this.#meters.set(key, meter)
    }
  }

  get(key: string): QuotaMeter | undefined {
    return this.#meters.get(key)
  }
}
