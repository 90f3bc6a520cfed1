import type { BatchStatistics, ModelStatistics, StatisticDuration } from '@tutti/model-config'

type Compute = Omit<BatchStatistics, 'batchSize'>

/**
 * The statistics of replicas as if they were one process: sums for each name and version, in the order in which these first
 * come; the latest of the last inferences; batch sizes ascending.
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
  return {
    name: a.name,
    version: a.version,
    lastInference: a.lastInference > b.lastInference ? a.lastInference : b.lastInference,
    inferenceCount: a.inferenceCount + b.inferenceCount,
    executionCount: a.executionCount + b.executionCount,
    success: add(a.success, b.success),
    fail: add(a.fail, b.fail),
    queue: add(a.queue, b.queue),
    ...addCompute(a, b),
    cacheHit: add(a.cacheHit, b.cacheHit),
    cacheMiss: add(a.cacheMiss, b.cacheMiss),
    batchStats: addBatches(a.batchStats, b.batchStats),
  }
}

function addBatches(
  a: readonly BatchStatistics[],
  b: readonly BatchStatistics[],
): readonly BatchStatistics[] {
  const sums = new Map<bigint, BatchStatistics>()
  for (const batch of [...a, ...b]) {
    const sum = sums.get(batch.batchSize)
    sums.set(batch.batchSize, sum === undefined ? batch : { ...batch, ...addCompute(sum, batch) })
  }
  return [...sums.values()].toSorted((one, other) => Number(one.batchSize - other.batchSize))
}

function addCompute(a: Compute, b: Compute): Compute {
  return {
    computeInput: add(a.computeInput, b.computeInput),
    computeInfer: add(a.computeInfer, b.computeInfer),
    computeOutput: add(a.computeOutput, b.computeOutput),
  }
}

function add(a: StatisticDuration, b: StatisticDuration): StatisticDuration {
  return { count: a.count + b.count, ns: a.ns + b.ns }
}
