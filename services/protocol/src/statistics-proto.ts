import type { BatchStatistics, ModelStatistics, StatisticDuration } from '@tutti/model-config'
import type { ModelStatisticsResponse } from './gen/inference/ModelStatisticsResponse.ts'

/** Makes the answer to ModelStatistics for gRPC. 64-bit integers are decimal texts, because proto-loader takes no bigint. */
export function statisticsToProto(statistics: readonly ModelStatistics[]): ModelStatisticsResponse {
  return statisticsBody(statistics, String)
}

/** Makes the answer to ModelStatistics, with members in Triton's order. @param integer - converts a 64-bit integer. */
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
