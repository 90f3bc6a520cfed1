import type { MetricFamily } from '@tutti/telemetry'
import type { CacheCounts, ResponseCache } from './response-cache.ts'

/** Makes the metric families of a cache, with Triton's names and texts. A shared cache has none about its entries. */
export function cacheFamilies(cache: Pick<ResponseCache, 'counts'>): readonly MetricFamily[] {
  const { counts } = cache
  return [
    ...(counts.held === undefined ? [] : heldFamilies(counts.held)),
    gauge('num_hits', 'Number of cache hits in response cache', counts.hits),
    gauge('num_misses', 'Number of cache misses in response cache', counts.misses),
    gauge('num_lookups', 'Number of cache lookups in response cache', counts.hits + counts.misses),
    gauge(
      'lookup_duration',
      'Total cache lookup duration (hit and miss), in microseconds',
      Math.floor(counts.lookupNs / 1000),
    ),
    gauge(
      'insertion_duration',
      'Total cache insertion duration, in microseconds',
      Math.floor(counts.insertionNs / 1000),
    ),
  ]
}

function heldFamilies(held: NonNullable<CacheCounts['held']>): readonly MetricFamily[] {
  return [
    gauge('util', 'Cache utilization [0.0 - 1.0]', held.utilization),
    gauge('num_entries', 'Number of responses stored in response cache', held.entries),
    gauge('num_evictions', 'Number of cache evictions in response cache', held.evictions),
  ]
}

function gauge(name: string, help: string, value: number): MetricFamily {
  return { name: `nv_cache_${name}`, help, type: 'gauge', series: [{ labels: [], value }] }
}
