import type { BatchStatistics, ModelStatistics, StatisticDuration } from '@tutti/model-config'
import type { ModelStatisticsResponse } from './gen/inference/ModelStatisticsResponse.ts'

/** The answer to ModelStatistics. 64-bit integers are decimal text, which proto-loader takes; bigint it does not. */
export function statisticsToProto(statistics: readonly ModelStatistics[]): ModelStatisticsResponse {
  return statisticsBody(statistics, String)
}

/** The answer to ModelStatistics, in Triton's member order. @param integer - makes the form of a 64-bit integer. */
export function statisticsBody<Integer>(
  statistics: readonly ModelStatistics[],
  integer: (value: bigint) => Integer,
) {
  const duration = ({ count, ns }: StatisticDuration) => ({
    count: integer(count),
    ns: integer(ns),
  })
  const compute = (one: ModelStatistics | BatchStatistics) => ({
    compute_input: duration(one.computeInput),
    compute_infer: duration(one.computeInfer),
    compute_output: duration(one.computeOutput),
  })
  return {
    model_stats: statistics.map((model) => ({
      name: model.name,
      version: model.version,
      last_inference: integer(model.lastInference),
      inference_count: integer(model.inferenceCount),
      execution_count: integer(model.executionCount),
      inference_stats: {
        success: duration(model.success),
        fail: duration(model.fail),
        queue: duration(model.queue),
        ...compute(model),
        cache_hit: duration(model.cacheHit),
        cache_miss: duration(model.cacheMiss),
      },
      response_stats: {},
      batch_stats: model.batchStats.map((batch) => ({
        batch_size: integer(batch.batchSize),
        ...compute(batch),
      })),
      memory_usage: [],
    })),
  }
}
