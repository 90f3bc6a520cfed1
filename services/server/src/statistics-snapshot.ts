import type { BatchStatistics, ModelStatistics, StatisticDuration } from '@tutti/model-config'

/** One execution, of one request or of several that a batcher put together. */
export interface Execution {
  /** Items over all requests of the execution; 0 (a model without a batch dimension) counts as 1. */
  readonly batchSize: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
}

/** One request that succeeded. For an ensemble the times are the sums over its steps (triton-semantics 1.10). */
export interface SuccessfulRequest extends Execution {
  /** From arrival to the last response, in nanoseconds. */
  readonly requestNs: number
  readonly queueNs: number
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
  /** By size. */
  readonly batches: ReadonlyMap<number, RecordedCompute>
}

/** What was recorded of a model version, as statistics. There is no response cache, so its counts are 0. */
export function toModelStatistics(
  { name, version }: Pick<ModelStatistics, 'name' | 'version'>,
  recorded: RecordedStatistics,
): ModelStatistics {
  return {
    name,
    version,
    lastInference: BigInt(recorded.lastInferenceMs),
    inferenceCount: BigInt(recorded.inferenceCount),
    executionCount: BigInt(recorded.executionCount),
    success: toDuration(recorded.success),
    fail: toDuration(recorded.fail),
    queue: toDuration(recorded.queue),
    ...toCompute(recorded.compute),
    cacheHit: { count: 0n, ns: 0n },
    cacheMiss: { count: 0n, ns: 0n },
    batchStats: [...recorded.batches]
      .toSorted(([a], [b]) => a - b)
      .map(([size, sums]): BatchStatistics => ({ batchSize: BigInt(size), ...toCompute(sums) })),
  }
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
