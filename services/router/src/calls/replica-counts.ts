import type { Clock } from '@tutti/chassis'
import type { ReplicaTotals } from '@tutti/console'
import type { ServeError } from '@tutti/errors'
import type { StepCallTimes } from '@tutti/telemetry'

/** Time for which counts are kept after a page has last read them. */
const KEPT_MS = 60_000
/** Steps, each with one of its replicas: a few megabytes. */
const MAX_PAIRS = 20_000

type Totals = { -readonly [K in keyof ReplicaTotals]: ReplicaTotals[K] }
/** A place at a replica. */
export interface Place {
  readonly replica: { readonly address: { readonly replica: string } }
}
/** A call of a step. */
export type Called = Pick<ReplicaTotals, 'ensemble' | 'step'> & {
  readonly target: { readonly entry: { readonly name: string } }
}

/**
 * The number and the times of the calls of each step at each replica, for people who look at a router: counted from the first
 * time that they are read on, and no more once they were not read for a minute. Without timers.
 */
export class ReplicaCounts {
  /** Whether calls are to be counted. */
  isCounting = false
  readonly #clock: Pick<Clock, 'now'>
  readonly #totals = new Map<string, Totals>()
  #readAt = 0

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Begins to count. @returns those since then; all pairs of a step and a replica that had a call. */
  read(): readonly ReplicaTotals[] {
    this.#dropOld()
    this.#readAt = this.#clock.now()
    this.isCounting = true
    return [...this.#totals.values()]
  }

  answered(call: Called, chosen: Place | undefined, times: StepCallTimes): void {
    const totals = chosen && this.#of(call, chosen.replica.address.replica)
    if (totals === undefined) return
    totals.requests += 1
    totals.queueMs += times.queueNs / 1e6
    totals.transferMs += times.transferNs / 1e6
    totals.computeMs += times.computeNs / 1e6
  }

  /**
   * Counts a failed attempt, whether it is tried again or not. An attempt whose caller has left, or whose hedge has won, says
   * nothing about the replica.
   */
  failed(call: Called, replica: string | undefined, { code }: Pick<ServeError, 'code'>): void {
    if (replica === undefined || code === 'CANCELLED') return
    const totals = this.#of(call, replica)
    if (totals !== undefined) totals.failures += 1
  }

  #of({ ensemble, step, target }: Called, replica: string): Totals | undefined {
    this.#dropOld()
    if (!this.isCounting) return undefined
    const model = target.entry.name
    const key = JSON.stringify([replica, model, ensemble, step])
    const known = this.#totals.get(key)
    if (known !== undefined || this.#totals.size >= MAX_PAIRS) return known
    const none = { requests: 0, failures: 0, queueMs: 0, transferMs: 0, computeMs: 0 }
    const fresh = { replica, model, ensemble, step, ...none }
    this.#totals.set(key, fresh)
    return fresh
  }

  #dropOld(): void {
    if (this.#clock.now() - this.#readAt <= KEPT_MS) return
    this.isCounting = false
    this.#totals.clear()
  }
}
