import type { ModelStatistics, StatisticDuration } from '@tutti/model-config'
import type { IndexEntry } from '../inference-backend.ts'

/*
 * The JSON bodies of the statistics and repository calls, in Triton's member order.
 */

/** The body of the statistics calls. Counts stay bigint, for `jsonReply`. */
export function statisticsBody(statistics: readonly ModelStatistics[]): unknown {
  return {
    model_stats: statistics.map((model) => ({
      name: model.name,
      version: model.version,
      last_inference: model.lastInference,
      inference_count: model.inferenceCount,
      execution_count: model.executionCount,
      inference_stats: {
        success: duration(model.success),
        fail: duration(model.fail),
        queue: duration(model.queue),
        compute_input: duration(model.computeInput),
        compute_infer: duration(model.computeInfer),
        compute_output: duration(model.computeOutput),
        cache_hit: duration(model.cacheHit),
        cache_miss: duration(model.cacheMiss),
      },
      response_stats: {},
      batch_stats: model.batchStats.map((batch) => ({
        batch_size: batch.batchSize,
        compute_input: duration(batch.computeInput),
        compute_infer: duration(batch.computeInfer),
        compute_output: duration(batch.computeOutput),
      })),
      memory_usage: [],
    })),
  }
}

function duration({ count, ns }: StatisticDuration): unknown {
  return { count, ns }
}

/** The body of the repository index; empty members are left out (triton-semantics 3.5). */
export function indexBody(entries: readonly IndexEntry[]): unknown {
  return entries.map((entry) =>
    Object.fromEntries(
      [
        ['name', entry.name],
        ['version', entry.version],
        ['state', entry.state],
        ['reason', entry.reason],
      ].filter(([, value]) => value !== ''),
    ),
  )
}
