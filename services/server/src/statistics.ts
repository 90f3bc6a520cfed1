import { systemClock } from '@tutti/chassis'
import type { ModelStatistics } from '@tutti/model-config'
import type { ResponseSink, StepTimes } from '@tutti/tensor'
import type { CacheStatistics } from './cache/cache-statistics.ts'
import type { FailureReason } from './failure-reasons.ts'
import { type Execution, type SuccessfulRequest, toModelStatistics } from './statistics-snapshot.ts'
import type { StepLabels, StepParts } from './step-labels.ts'

/**
 * Counts what happens to one model version, with Triton's meaning: each successful request adds its batch size to
 * `inferenceCount`, each execution adds one to `executionCount`. Recording costs additions only.
 */
export class StatisticsRecorder {
  readonly name: string
  readonly version: string
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
  /** Counts each success too, for summaries. */
  observe: ((request: SuccessfulRequest) => void) | undefined
  /** Of a model whose responses are cached. */
  cache: CacheStatistics | undefined
  /** Watches what a request is answered, for histograms. */
  watch: ((sink: ResponseSink) => ResponseSink) | undefined

  constructor(o: { name: string; version: string; clock?: { epochMs(): number } }) {
    this.name = o.name
    this.version = o.version
    this.#clock = o.clock ?? systemClock
  }

  recordSuccess(request: SuccessfulRequest): void {
    this.#recorded.lastInferenceMs = this.#clock.epochMs()
    this.#recorded.inferenceCount += Math.max(1, request.batchSize)
    this.#recorded.success.add(request.requestNs)
    this.#recorded.queue.add(request.queueNs)
    this.#recorded.compute.add(request)
    this.observe?.(request)
  }

  recordExecution(execution: Execution): void {
    this.#recorded.lastInferenceMs = this.#clock.epochMs()
    this.#recorded.executionCount += 1
    const size = Math.max(1, execution.batchSize)
    const batch = this.#recorded.batches.get(size) ?? new ComputeSums()
    this.#recorded.batches.set(size, batch)
    batch.add(execution)
  }

  /** A failed ensemble request is recorded twice by the router, as in Triton (triton-semantics 9.6). */
  recordFailure(failure: { readonly requestNs: number; readonly reason: FailureReason }): void {
    this.#failures[failure.reason] += 1
    this.#recorded.fail.add(failure.requestNs)
  }

  failures(reason: FailureReason): number {
    return this.#failures[reason]
  }

  /** The statistics of this moment. */
  snapshot(): ModelStatistics {
    return toModelStatistics(this, this.#recorded)
  }
}

/** A count and a sum of nanoseconds: exact for 104 days of busy time, to 16 digits after that. */
class DurationSum {
  count = 0
  ns = 0

  /** A clock that steps back must not take time away. */
  add(ns: number): void {
    this.count += 1
    if (ns > 0) this.ns += Math.round(ns)
  }
}

class ComputeSums {
  readonly input = new DurationSum()
  readonly infer = new DurationSum()
  readonly output = new DurationSum()

  add(times: Omit<Execution, 'batchSize'>): void {
    this.input.add(times.computeInputNs)
    this.infer.add(times.computeInferNs)
    this.output.add(times.computeOutputNs)
  }
}

/** 0.1 ms to 30 s: a step in the same process takes less than a millisecond, a heavy model seconds. */
export const BUCKETS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
  30,
] as const

interface Step {
  readonly labels: StepLabels
  readonly parts: Readonly<Record<'queue' | 'transfer' | 'compute', Histogram>>
}

/**
 * The histograms of `tutti_step_{queue,transfer,compute}_seconds`, counted here: prom-client takes several
 * microseconds for the three observations of a request, as it sorts and hashes their labels each time.
 */
export class StepHistograms {
  readonly #steps = new Map<string, Step>()

  /** Drops the step's series. */
  remove(labels: StepLabels): void {
    this.#steps.delete(stepKey(labels))
  }

  /** @param elapsedNs - of the whole call: what it took beyond the step's own queue and compute is the transfer. */
  readonly observe = (labels: StepLabels, times: StepTimes, elapsedNs: number): StepParts => {
    const { queue, transfer, compute } = this.add(labels).parts
    const { queueNs } = times
    const computeNs = times.computeInputNs + times.computeInferNs + times.computeOutputNs
    const transferNs = Math.max(0, elapsedNs - queueNs - computeNs)
    queue.observe(queueNs / 1e9)
    transfer.observe(transferNs / 1e9)
    compute.observe(computeNs / 1e9)
    return { queueNs, transferNs, computeNs }
  }

  /** What was counted so far. */
  get steps(): readonly Step[] {
    return [...this.#steps.values()]
  }

  /** The step's series appear, at 0, unless they are there. */
  add(labels: StepLabels): Step {
    const key = stepKey(labels)
    const known = this.#steps.get(key)
    if (known !== undefined) return known
    const parts = { queue: new Histogram(), transfer: new Histogram(), compute: new Histogram() }
    const made = { labels, parts }
    this.#steps.set(key, made)
    return made
  }
}

/** A line break occurs in no name, so that the parts cannot run into one another. */
function stepKey({ ensemble, step, model }: StepLabels): string {
  return `${ensemble}\n${step}\n${model}`
}

class Histogram {
  /** By bucket, each value once; the last one is what is over all bounds. */
  readonly counts = [...BUCKETS_S, Number.POSITIVE_INFINITY].map(() => 0)
  sum = 0

  observe(value: number): void {
    let bucket = 0
    for (const bound of BUCKETS_S) {
      if (value <= bound) break
      bucket += 1
    }
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1
    this.sum += value
  }
}
