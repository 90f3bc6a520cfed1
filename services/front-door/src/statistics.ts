import { systemClock } from '@tutti/chassis'
import type { Reason, ServeError } from '@tutti/errors'
import type { BatchStatistics, ModelStatistics, StatisticDuration } from '@tutti/model-config'

/** Triton's values of the failure metric's `reason` label. */
export const FAILURE_REASONS = ['REJECTED', 'CANCELED', 'BACKEND', 'OTHER'] as const

export type FailureReason = (typeof FAILURE_REASONS)[number]

const REASON_OF_FAILURE: Readonly<Partial<Record<Reason, FailureReason>>> = {
  QUEUE_FULL: 'REJECTED',
  QUEUE_TIMEOUT: 'REJECTED',
  OVERLOADED: 'REJECTED',
  CANCELLED: 'CANCELED',
  DEADLINE_EXCEEDED: 'CANCELED',
  ENGINE_FAILED: 'BACKEND',
  ENGINE_STOPPED: 'BACKEND',
  RESPONSE_INVALID: 'BACKEND',
}

/** The failure metric's reason for an error of a model; an ensemble's own failures are always OTHER. */
export function toFailureReason(error: ServeError): FailureReason {
  return REASON_OF_FAILURE[error.reason] ?? 'OTHER'
}

/** One request that was answered well. For an ensemble the times are the sums over its steps (triton-semantics 1.10). */
export interface SuccessfulRequest {
  /** From arrival to the last response, in nanoseconds. */
  readonly requestNs: number
  readonly queueNs: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
  /** Items in the batch dimension; 0 (a model without one) counts as 1. */
  readonly batchSize: number
}

/** One execution, of one request or of several that a batcher put together. */
export interface Execution {
  /** Items over all requests of the execution; 0 counts as 1. */
  readonly batchSize: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
}

export interface FailedRequest {
  readonly requestNs: number
  readonly reason: FailureReason
}

export interface StatisticsRecorderOptions {
  readonly name: string
  readonly version: string
  readonly clock?: { epochMs(): number }
}

/**
 * Counts what happens to one model version, with Triton's meaning: each successful request adds its batch size to
 * `inferenceCount`, each execution adds one to `executionCount`. Recording costs additions only; bigint appears in
 * `snapshot()`.
 */
export class StatisticsRecorder {
  readonly name: string
  readonly version: string
  readonly #clock: { epochMs(): number }
  readonly #success = new DurationSum()
  readonly #fail = new DurationSum()
  readonly #queue = new DurationSum()
  readonly #compute = new ComputeSums()
  readonly #batches = new Map<number, ComputeSums>()
  readonly #failures = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 }
  #lastInferenceMs = 0
  #inferenceCount = 0
  #executionCount = 0
  #pending = 0

  constructor(o: StatisticsRecorderOptions) {
    this.name = o.name
    this.version = o.version
    this.#clock = o.clock ?? systemClock
  }

  recordSuccess(request: SuccessfulRequest): void {
    this.#lastInferenceMs = this.#clock.epochMs()
    this.#inferenceCount += Math.max(1, request.batchSize)
    this.#success.add(request.requestNs)
    this.#queue.add(request.queueNs)
    this.#compute.add(request)
  }

  recordExecution(execution: Execution): void {
    this.#lastInferenceMs = this.#clock.epochMs()
    this.#executionCount += 1
    const size = Math.max(1, execution.batchSize)
    let batch = this.#batches.get(size)
    if (batch === undefined) {
      batch = new ComputeSums()
      this.#batches.set(size, batch)
    }
    batch.add(execution)
  }

  /** A failed ensemble request is recorded twice by the router, as in Triton (triton-semantics 9.6). */
  recordFailure(failure: FailedRequest): void {
    this.#failures[failure.reason] += 1
    this.#fail.add(failure.requestNs)
  }

  /** @param change - 1 when a request is waiting for its execution, -1 when it no longer is. */
  addPending(change: 1 | -1): void {
    this.#pending += change
  }

  /** Requests that wait for their execution. */
  get pending(): number {
    return this.#pending
  }

  failures(reason: FailureReason): number {
    return this.#failures[reason]
  }

  /** The statistics of this moment. There is no response cache, so its counts are 0. */
  snapshot(): ModelStatistics {
    return {
      name: this.name,
      version: this.version,
      lastInference: BigInt(this.#lastInferenceMs),
      inferenceCount: BigInt(this.#inferenceCount),
      executionCount: BigInt(this.#executionCount),
      success: this.#success.snapshot(),
      fail: this.#fail.snapshot(),
      queue: this.#queue.snapshot(),
      ...this.#compute.snapshot(),
      cacheHit: { count: 0n, ns: 0n },
      cacheMiss: { count: 0n, ns: 0n },
      batchStats: [...this.#batches]
        .toSorted(([a], [b]) => a - b)
        .map(([size, sums]): BatchStatistics => ({ batchSize: BigInt(size), ...sums.snapshot() })),
    }
  }
}

const NS_PER_SECOND = 1_000_000_000

/**
 * A count and a sum of nanoseconds. Whole seconds are kept apart: as one number the sum would lose nanoseconds after
 * 104 days of busy time, which a busy server with many instances reaches in a week.
 */
class DurationSum {
  #count = 0
  #seconds = 0
  #restNs = 0

  /** A clock that steps back must not take time away, so less than 0 counts as 0. */
  add(ns: number): void {
    this.#count += 1
    this.#restNs += ns > 0 ? Math.round(ns) : 0
    if (this.#restNs < NS_PER_SECOND) return
    const seconds = Math.floor(this.#restNs / NS_PER_SECOND)
    this.#seconds += seconds
    this.#restNs -= seconds * NS_PER_SECOND
  }

  snapshot(): StatisticDuration {
    return {
      count: BigInt(this.#count),
      ns: BigInt(this.#seconds) * BigInt(NS_PER_SECOND) + BigInt(this.#restNs),
    }
  }
}

class ComputeSums {
  readonly #input = new DurationSum()
  readonly #infer = new DurationSum()
  readonly #output = new DurationSum()

  add(times: Omit<Execution, 'batchSize'>): void {
    this.#input.add(times.computeInputNs)
    this.#infer.add(times.computeInferNs)
    this.#output.add(times.computeOutputNs)
  }

  snapshot(): Pick<ModelStatistics, 'computeInput' | 'computeInfer' | 'computeOutput'> {
    return {
      computeInput: this.#input.snapshot(),
      computeInfer: this.#infer.snapshot(),
      computeOutput: this.#output.snapshot(),
    }
  }
}
