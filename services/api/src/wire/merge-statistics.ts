import type { BatchStatistics, ModelStatistics, StatisticDuration } from '@tutti/model-config'

const COMPUTE = ['computeInput', 'computeInfer', 'computeOutput'] as const
const ALL = ['success', 'fail', 'queue', 'cacheHit', 'cacheMiss', ...COMPUTE] as const

/**
 * Adds up the statistics of replicas as if they were one process. There is one entry for each name and version, in the order of
 * first appearance. `lastInference` is the latest one, and batch sizes ascend.
 */
export function mergeStatistics(
  replicas: readonly (readonly ModelStatistics[])[],
): readonly ModelStatistics[] {
  const merged = new Map<string, ModelStatistics>()
  for (const one of replicas.flat()) {
    const key = JSON.stringify([one.name, one.version])
    const sum = merged.get(key)
    merged.set(key, sum === undefined ? one : addStatistics(sum, one))
  }
  return [...merged.values()]
}

function addStatistics(a: ModelStatistics, b: ModelStatistics): ModelStatistics {
  const sizes = new Map<bigint, BatchStatistics>()
  for (const batch of [...a.batchStats, ...b.batchStats]) {
    const sum = sizes.get(batch.batchSize)
    sizes.set(batch.batchSize, sum === undefined ? batch : add(COMPUTE, sum, batch))
  }
  return {
    ...add(ALL, a, b),
    lastInference: a.lastInference > b.lastInference ? a.lastInference : b.lastInference,
    inferenceCount: a.inferenceCount + b.inferenceCount,
    executionCount: a.executionCount + b.executionCount,
    batchStats: [...sizes.values()].toSorted((x, y) => Number(x.batchSize - y.batchSize)),
  }
}

/** Returns `a` with the sums of the durations of both. */
function add<K extends string, T extends Readonly<Record<K, StatisticDuration>>>(
  names: readonly K[],
  a: T,
  b: T,
): T {
  const sums = names.map((name) => {
    return [name, { count: a[name].count + b[name].count, ns: a[name].ns + b[name].ns }]
  })
  return { ...a, ...Object.fromEntries(sums) }
}
