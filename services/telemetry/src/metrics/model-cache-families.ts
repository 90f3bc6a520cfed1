import type { ModelStatistics, StatisticDuration } from '@tutti/model-config'

/** Families of models whose responses are cached: name, help, what is read. */
export const MODEL_CACHE_FAMILIES = [
  [
    'nv_cache_num_hits_per_model',
    'Number of cache hits per model',
    (s: ModelStatistics) => Number(s.cacheHit.count),
  ],
  [
    'nv_cache_hit_duration_per_model',
    'Total cache hit duration per model, in microseconds',
    (s: ModelStatistics) => toMicroseconds(s.cacheHit),
  ],
  [
    'nv_cache_num_misses_per_model',
    'Number of cache misses per model',
    (s: ModelStatistics) => Number(s.cacheMiss.count),
  ],
  [
    'nv_cache_miss_duration_per_model',
    'Total cache miss (insert+lookup) duration per model, in microseconds',
    (s: ModelStatistics) => toMicroseconds(s.cacheMiss),
  ],
] as const

export function toMicroseconds({ ns }: StatisticDuration): number {
  return Number(ns / 1000n)
}
