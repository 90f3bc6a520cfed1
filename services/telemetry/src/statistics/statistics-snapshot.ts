import type { BatchStatistics, ModelStatistics, StatisticDuration } from '@tutti/model-config'
import type { CacheStatistics } from './cache-statistics.ts'

/** One execution, of one request or of several that a batcher put together. */
export interface ExecutionRecord {
  /** Items over all requests of the execution; 0 (a model without a batch dimension) counts as 1. */
  readonly batchSize: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
}

/** A count and a sum of nanoseconds. */
interface RecordedDuration {
  readonly count: number
  readonly ns: number
}

/** The durations of executions. */
interface RecordedCompute {
  readonly input: RecordedDuration
  readonly infer: RecordedDuration
  readonly output: RecordedDuration
}

interface RecordedStatistics {
  readonly lastInferenceMs: number
  readonly inferenceCount: number
  readonly executionCount: number
  readonly success: RecordedDuration
  readonly fail: RecordedDuration
  readonly queue: RecordedDuration
  readonly compute: RecordedCompute
  /** Times of executions, by batch size. */
  readonly batches: ReadonlyMap<number, RecordedCompute>
}

interface Named extends Pick<ModelStatistics, 'name' | 'version'> {
  readonly cache: CacheStatistics | undefined
}

const NO_CACHE = { hits: { count: 0, ns: 0 }, misses: { count: 0, ns: 0 }, hitRequestsNs: 0 }

/** Writes what was recorded of a model version as statistics. A hit in the response cache is a success that waited for nothing. */
export function toModelStatistics(
  { name, version, cache }: Named,
  recorded: RecordedStatistics,
): ModelStatistics {
  const { hits, misses, hitRequestsNs } = cache ?? NO_CACHE
  return {
    name,
    version,
    lastInference: BigInt(recorded.lastInferenceMs),
    inferenceCount: BigInt(recorded.inferenceCount),
    executionCount: BigInt(recorded.executionCount),
    success: toDuration(plus(recorded.success, { count: hits.count, ns: hitRequestsNs })),
    fail: toDuration(recorded.fail),
    queue: toDuration(plus(recorded.queue, { count: hits.count, ns: 0 })),
    ...toCompute(recorded.compute),
    cacheHit: toDuration(hits),
    cacheMiss: toDuration(misses),
    batchStats: [...recorded.batches]
      .toSorted(([a], [b]) => a - b)
      .map(([size, sums]): BatchStatistics => ({ batchSize: BigInt(size), ...toCompute(sums) })),
  }
}

function plus(a: RecordedDuration, b: RecordedDuration): RecordedDuration {
  return { count: a.count + b.count, ns: a.ns + b.ns }
}

function toCompute({ input, infer, output }: RecordedCompute) {
  return {
    computeInput: toDuration(input),
    computeInfer: toDuration(infer),
    computeOutput: toDuration(output),
  }
}

function toDuration({ count, ns }: RecordedDuration): StatisticDuration {
  return { count: BigInt(count), ns: BigInt(ns) }
}
