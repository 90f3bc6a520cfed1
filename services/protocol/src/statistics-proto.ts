import type { BatchStatistics, ModelStatistics, StatisticDuration } from '@tutti/model-config'
import type { InferBatchStatistics } from './gen/inference/InferBatchStatistics.ts'
import type { ModelStatistics as ModelStatisticsMessage } from './gen/inference/ModelStatistics.ts'
import type { ModelStatisticsResponse } from './gen/inference/ModelStatisticsResponse.ts'
import type { StatisticDuration as DurationMessage } from './gen/inference/StatisticDuration.ts'

function duration({ count, ns }: StatisticDuration): DurationMessage {
  return { count: count.toString(), ns: ns.toString() }
}

function batch(statistics: BatchStatistics): InferBatchStatistics {
  return {
    batch_size: statistics.batchSize.toString(),
    compute_input: duration(statistics.computeInput),
    compute_infer: duration(statistics.computeInfer),
    compute_output: duration(statistics.computeOutput),
  }
}

function one(statistics: ModelStatistics): ModelStatisticsMessage {
  return {
    name: statistics.name,
    version: statistics.version,
    last_inference: statistics.lastInference.toString(),
    inference_count: statistics.inferenceCount.toString(),
    execution_count: statistics.executionCount.toString(),
    inference_stats: {
      success: duration(statistics.success),
      fail: duration(statistics.fail),
      queue: duration(statistics.queue),
      compute_input: duration(statistics.computeInput),
      compute_infer: duration(statistics.computeInfer),
      compute_output: duration(statistics.computeOutput),
      cache_hit: duration(statistics.cacheHit),
      cache_miss: duration(statistics.cacheMiss),
    },
    batch_stats: statistics.batchStats.map(batch),
  }
}

/** The answer to ModelStatistics. 64-bit integers are decimal text, which proto-loader takes; bigint it does not. */
export function statisticsToProto(statistics: readonly ModelStatistics[]): ModelStatisticsResponse {
  return { model_stats: statistics.map(one) }
}
