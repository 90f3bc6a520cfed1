import type { ExecutionTimes } from '@tutti/backends'
import type { QueueEntry } from './queue-entry.ts'

/** Arrivals that are remembered: enough for the gaps within and between bursts of some dozens. */
const GAPS = 64
/** Part of each new execution in what is known of executions. */
const WEIGHT = 1 / 16
/** Variance of the size of batches, below which sizes say nothing about what a further item costs. */
const LEAST_VARIANCE = 0.25
/** A timer of a process may be that late. */
const TIMER_MS = 1

/** The requests that an instance could execute now. */
export interface HeldBatch {
  /** Requests. */
  readonly count: number
  /** Items. */
  readonly size: number
  /** When the first of them to time out does, by the clock; Infinity if none will. */
  readonly endsAt: number
}

/**
 * Decides how long a free instance waits for a further request (`maxQueueDelay: auto` of a Model). It waits for as long as, by the
 * gaps between the last requests, the execution time that a further request saves, spread over the requests of the batch, is
 * more than the wait that is to be expected. No clock of its own. Times are in milliseconds.
 */
export class AutoDelay {
  /** Gaps between the last arrivals, ascending, and in the order in which they came. */
  readonly #sorted: number[] = []
  readonly #gaps: number[] = []
  #nextGap = 0
  #arrivedAt = Number.NaN
  /** When the batch that waits now could have executed first. */
  #heldSince: number | undefined
  /** Means over executions, weighted by age: `itemMs` is what a further item costs, undefined until sizes have differed. */
  #size = 0
  #ms = 0
  #variance = 0
  #covariance = 0
  #itemMs: number | undefined

  /** @param isFirst - nothing waited before it. */
  arrived(now: number, isFirst: boolean): void {
    if (isFirst) this.released()
    const gap = now - this.#arrivedAt
    this.#arrivedAt = now
    if (Number.isNaN(gap)) return
    const oldest = this.#gaps[this.#nextGap]
    if (oldest !== undefined) this.#sorted.splice(this.#firstFrom(oldest), 1)
    this.#gaps[this.#nextGap] = gap
    this.#nextGap = (this.#nextGap + 1) % GAPS
    this.#sorted.splice(this.#firstFrom(gap), 0, gap)
  }

  /** An execution has ended well. @param size - its items. */
  executed(size: number, times: ExecutionTimes): void {
    const ms = (times.computeInputNs + times.computeInferNs + times.computeOutputNs) / 1e6
    if (this.#size === 0) {
      this.#size = size
      this.#ms = ms
      return
    }
    const more = size - this.#size
    const longer = ms - this.#ms
    this.#size += WEIGHT * more
    this.#ms += WEIGHT * longer
    this.#variance = (1 - WEIGHT) * (this.#variance + WEIGHT * more * more)
    this.#covariance = (1 - WEIGHT) * (this.#covariance + WEIGHT * more * longer)
    // Batches of one size say nothing of it: what was learnt before stands.
    if (this.#variance >= LEAST_VARIANCE) this.#itemMs = this.#covariance / this.#variance
  }

  /** The cost of an execution beside its items: each request that joins a batch saves it. 0 while it is not known. */
  get savedMs(): number {
    if (this.#itemMs === undefined) return 0
    return Math.min(this.#ms, Math.max(0, this.#ms - this.#itemMs * this.#size))
  }

  /** How long one request would wait for a second one, if it came now. */
  get delayMs(): number {
    return this.#windowMs(this.savedMs / 2, 0)
  }

  /** @returns when the batch has to execute unless a further request has come: `now` if waiting does not pay. */
  holdUntil({ count, size, endsAt }: HeldBatch, now: number): number {
    this.#heldSince ??= now
    const executionMs = this.#ms + (this.#itemMs ?? 0) * (size - this.#size)
    const latest = Math.min(this.#heldSince + executionMs, endsAt - executionMs - TIMER_MS)
    const elapsed = now - this.#arrivedAt
    const end = this.#arrivedAt + this.#windowMs(this.savedMs / (count + 1), elapsed)
    return Math.max(now, Math.min(end, latest))
  }

  /** The batch executes. */
  released(): void {
    this.#heldSince = undefined
  }

  /**
   * Finds, of all waits that end when one of the known gaps would have passed, the one with the largest gain: what is saved, if a
   * request comes by then, less the mean wait.
   *
   * @param elapsed - since the last arrival: shorter gaps cannot be the present one.
   * @returns the length of that gap, `elapsed` if no wait pays.
   */
  #windowMs(savedMs: number, elapsed: number): number {
    const sorted = this.#sorted
    const first = this.#firstFrom(elapsed)
    const count = sorted.length - first
    let best = elapsed
    let mostGain = 0
    let waited = 0
    for (let i = first; i < sorted.length; i += 1) {
      const gap = sorted[i] ?? 0
      const waitMs = gap - elapsed
      if (waitMs > savedMs) break
      waited += waitMs
      const come = i - first + 1
      const gain = come * savedMs - waited - (count - come) * (waitMs + TIMER_MS)
      if (gain <= mostGain) continue
      mostGain = gain
      best = gap
    }
    return best
  }

  /** The index of the first known gap that is not below `gap`. */
  #firstFrom(gap: number): number {
    const found = this.#sorted.findIndex((known) => known >= gap)
    return found < 0 ? this.#sorted.length : found
  }
}

/** The rules that decide how long the batches of a queue wait, in place of a fixed delay. */
export interface AutoDelayOptions<T> {
  readonly delay: AutoDelay
  /** When the client no longer waits for the request, by the clock; Infinity if it always does. */
  readonly deadlineOf: (item: T) => number
}

interface QueuedBatch<T> extends Omit<HeldBatch, 'endsAt'> {
  readonly first: QueueEntry<T>
}

/** When the first requests of a queue have to execute, as `holdUntil`. */
export function heldUntil<T>(
  { delay, deadlineOf }: AutoDelayOptions<T>,
  { first, count, size }: QueuedBatch<T>,
  now: number,
): number {
  let endsAt = Number.POSITIVE_INFINITY
  let entry: QueueEntry<T> | undefined = first
  for (let i = 0; entry !== undefined && i < count; i += 1, entry = entry.next) {
    const expiresAt = entry.isDelayed ? endsAt : entry.expiresAt
    endsAt = Math.min(endsAt, expiresAt, deadlineOf(entry.item))
  }
  return delay.holdUntil({ count, size, endsAt }, now)
}
