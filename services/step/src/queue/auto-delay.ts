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

/** Requests that an idle instance could execute together now. */
export interface HeldBatch {
  /** Number of requests. */
  readonly count: number
  /** Number of items. */
  readonly size: number
  /** Time of the earliest timeout among the requests, in milliseconds of the clock; Infinity if there is none. */
  readonly endsAt: number
}

/**
 * Decides how long an idle instance waits for a further request (`maxQueueDelay: auto` of a Model). A further request in the
 * batch saves execution time. The instance waits while this saving for each request exceeds the expected wait, as estimated from
 * the gaps between recent requests. The caller passes the time, in milliseconds.
 */
export class AutoDelay {
  /** Gaps between the last arrivals, ascending, and in the order in which they came. */
  readonly #sorted: number[] = []
  readonly #gaps: number[] = []
  #nextGap = 0
  #arrivedAt = Number.NaN
  /** Time from which the waiting batch could have executed. */
  #heldSince: number | undefined
  /** Means over executions, weighted by age: `itemMs` is what a further item costs, undefined until sizes have differed. */
  #size = 0
  #ms = 0
  #variance = 0
  #covariance = 0
  #itemMs: number | undefined

  /** Notes the arrival of a request. @param isFirst - true if the queue was empty. */
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

  /** Learns from an execution that has succeeded. @param size - number of its items. */
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

  /**
   * Milliseconds that each request saves by joining a batch: the part of an execution that does not depend on its items. 0 while
   * it is not known.
   */
  get savedMs(): number {
    if (this.#itemMs === undefined) return 0
    return Math.min(this.#ms, Math.max(0, this.#ms - this.#itemMs * this.#size))
  }

  /** Milliseconds that one request would wait for a second one, if it came now. */
  get delayMs(): number {
    return this.#windowMs(this.savedMs / 2, 0)
  }

  /**
   * Computes how long to hold a batch.
   *
   * @returns the time at which the batch executes if no further request comes; `now` if waiting does not pay.
   */
  holdUntil({ count, size, endsAt }: HeldBatch, now: number): number {
    this.#heldSince ??= now
    const executionMs = this.#ms + (this.#itemMs ?? 0) * (size - this.#size)
    const latest = Math.min(this.#heldSince + executionMs, endsAt - executionMs - TIMER_MS)
    const elapsed = now - this.#arrivedAt
    const end = this.#arrivedAt + this.#windowMs(this.savedMs / (count + 1), elapsed)
    return Math.max(now, Math.min(end, latest))
  }

  /** Notes that the batch executes. */
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

  /** Finds the index of the first known gap that is not below `gap`. */
  #firstFrom(gap: number): number {
    const found = this.#sorted.findIndex((known) => known >= gap)
    return found < 0 ? this.#sorted.length : found
  }
}

/** Automatic delay of a queue, in place of a fixed one. */
export interface AutoDelayOptions<T> {
  readonly delay: AutoDelay
  /** Finds the time at which the client stops waiting for a request, in milliseconds of the clock; Infinity if it never does. */
  readonly deadlineOf: (item: T) => number
}

interface QueuedBatch<T> extends Omit<HeldBatch, 'endsAt'> {
  readonly first: QueueEntry<T>
}

/** Computes until when the first requests of a queue are held, as `holdUntil` does. */
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
