import { systemClock } from '@tutti/chassis'
import type { ModelStatistics } from '@tutti/model-config'
import {
  NO_TIMES,
  type RequestEnd,
  type RequestObserver,
  type RequestWatch,
  type StepTimes,
} from '@tutti/tensor'
import { Histogram } from '../histogram.ts'
import { CacheStatistics } from './cache-statistics.ts'
import { type FailureReason, toFailureReason } from './failure-reasons.ts'
import { type ExecutionRecord, toModelStatistics } from './statistics-snapshot.ts'
import { BUCKETS_S, type ObserveStep, type StepLabels } from './step-measures.ts'

export interface StatisticsRecorderOptions {
  readonly name: string
  readonly version: string
  readonly isEnsemble?: boolean
  /** True if responses of the model are cached. */
  readonly hasCache?: boolean
  readonly clock?: { epochMs(): number }
}

/**
 * Counts what happens to one model version, with Triton's meaning: each successful request adds its batch size to
 * `inferenceCount`, each execution adds one to `executionCount`. Recording costs additions only: it watches all requests itself.
 */
export class StatisticsRecorder implements RequestObserver, RequestWatch {
  readonly name: string
  readonly version: string
  /** The hits and misses of a model whose responses are cached. */
  readonly cache: CacheStatistics | undefined
  readonly #isEnsemble: boolean
  readonly #clock: { epochMs(): number }
  readonly #recorded = {
    lastInferenceMs: 0,
    inferenceCount: 0,
    executionCount: 0,
    success: new DurationSum(),
    fail: new DurationSum(),
    queue: new DurationSum(),
    compute: new ComputeSums(),
    batches: new Map<number, ComputeSums>(),
  }
  readonly #failures = { REJECTED: 0, CANCELED: 0, BACKEND: 0, OTHER: 0 }
  /** Requests that wait for their execution. */
  pending = 0

  constructor(o: StatisticsRecorderOptions) {
    this.name = o.name
    this.version = o.version
    this.cache = o.hasCache === true ? new CacheStatistics() : undefined
    this.#isEnsemble = o.isEnsemble ?? false
    this.#clock = o.clock ?? systemClock
  }

  began(): this {
    return this
  }

  queued(): void {
    this.pending += 1
  }

  dequeued(): void {
    this.pending -= 1
  }

  ended(end: RequestEnd): void {
    const { error, elapsedNs: requestNs, batchSize, times = NO_TIMES } = end
    if (error === undefined) {
      this.#succeeded(requestNs, batchSize, times)
      if (this.#isEnsemble) this.recordExecution({ ...times, batchSize })
      return
    }
    const reason = end.isOfEngine === true ? 'BACKEND' : toFailureReason(error)
    if (!this.#isEnsemble || reason === 'CANCELED') {
      return this.recordFailure({ requestNs, reason })
    }
    // Twice and as OTHER is what Triton 2.51 does (triton-semantics 9.6). A request that its client cancelled, or whose time is over, is one
    // request and no failure of anything; Triton executes it to its end.
    for (let i = 0; i < 2; i++) this.recordFailure({ requestNs, reason: 'OTHER' })
  }

  #succeeded(requestNs: number, batchSize: number, times: StepTimes): void {
    this.#recorded.lastInferenceMs = this.#clock.epochMs()
    this.#recorded.inferenceCount += Math.max(1, batchSize)
    this.#recorded.success.add(requestNs)
    this.#recorded.queue.add(times.queueNs)
    this.#recorded.compute.add(times)
  }

  recordExecution(execution: ExecutionRecord): void {
    this.#recorded.lastInferenceMs = this.#clock.epochMs()
    this.#recorded.executionCount += 1
    const size = Math.max(1, execution.batchSize)
    const batch = this.#recorded.batches.get(size) ?? new ComputeSums()
    this.#recorded.batches.set(size, batch)
    batch.add(execution)
  }

  recordFailure(failure: { readonly requestNs: number; readonly reason: FailureReason }): void {
    this.#failures[failure.reason] += 1
    this.#recorded.fail.add(failure.requestNs)
  }

  failures(reason: FailureReason): number {
    return this.#failures[reason]
  }

  /** Returns the statistics of this moment. */
  snapshot(): ModelStatistics {
    return toModelStatistics(this, this.#recorded)
  }
}

/** A count and a sum of nanoseconds: exact for 104 days of busy time, to 16 digits after that. */
class DurationSum {
  count = 0
  ns = 0

  /** Adds a duration. A clock that steps back takes no time away. */
  add(ns: number): void {
    this.count += 1
    if (ns > 0) this.ns += Math.round(ns)
  }
}

class ComputeSums {
  readonly input = new DurationSum()
  readonly infer = new DurationSum()
  readonly output = new DurationSum()

  add(times: Omit<ExecutionRecord, 'batchSize'>): void {
    this.input.add(times.computeInputNs)
    this.infer.add(times.computeInferNs)
    this.output.add(times.computeOutputNs)
  }
}

interface Step {
  readonly labels: StepLabels
  readonly parts: Readonly<Record<'queue' | 'transfer' | 'compute', Histogram>>
}

/** The histograms of `tutti_step_{queue,transfer,compute}_seconds`. */
export class StepHistograms {
  readonly #steps = new Map<string, Step>()

  /** Drops the step's series. */
  remove(labels: StepLabels): void {
    this.#steps.delete(stepKey(labels))
  }

  readonly observe: ObserveStep = (labels, times, elapsedNs, traceId) => {
    const { queue, transfer, compute } = this.add(labels).parts
    const { queueNs } = times
    const computeNs = times.computeInputNs + times.computeInferNs + times.computeOutputNs
    const transferNs = Math.max(0, elapsedNs - queueNs - computeNs)
    queue.observe(queueNs / 1e9, traceId)
    transfer.observe(transferNs / 1e9, traceId)
    compute.observe(computeNs / 1e9, traceId)
    return { queueNs, transferNs, computeNs }
  }

  /** The steps that were counted so far. */
  get steps(): readonly Step[] {
    return [...this.#steps.values()]
  }

  /** Adds the step's series, at 0, unless they are there. */
  add(labels: StepLabels): Step {
    const key = stepKey(labels)
    const known = this.#steps.get(key)
    if (known !== undefined) return known
    const parts = {
      queue: new Histogram(BUCKETS_S),
      transfer: new Histogram(BUCKETS_S),
      compute: new Histogram(BUCKETS_S),
    }
    const made = { labels, parts }
    this.#steps.set(key, made)
    return made
  }
}

/** Builds the key of a step. A line break occurs in no name, so that the parts stay apart. */
function stepKey({ ensemble, step, model }: StepLabels): string {
  return `${ensemble}\n${step}\n${model}`
}
