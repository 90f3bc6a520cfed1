import type { ModelStatistics } from '@tutti/model-config'
import type { Counts } from './api/counts.ts'

export const NO_COUNTS: Counts = {
  requests: 0,
  failures: 0,
  requestMs: 0,
  queueMs: 0,
  computeMs: 0,
}

/** Sums the statistics of each model over its versions. */
export function readCounts(
  statistics: readonly ModelStatistics[],
  isEnsemble: (name: string) => boolean,
): ReadonlyMap<string, Counts> {
  const sums = new Map<string, Counts>()
  for (const one of statistics) {
    const counts = toCounts(one, isEnsemble(one.name))
    const sum = sums.get(one.name)
    sums.set(one.name, sum === undefined ? counts : add(sum, counts))
  }
  return sums
}

/**
 * Converts statistics to counts. A failed request of an ensemble counts twice in its statistics, as in Triton, and here once. A
 * cancelled one counts once there, so half of those are missed.
 */
function toCounts(s: ModelStatistics, isEnsemble: boolean): Counts {
  const failed = Number(s.fail.count)
  return {
    requests: Number(s.success.count),
    failures: isEnsemble ? Math.ceil(failed / 2) : failed,
    requestMs: toMs(s.success.ns),
    queueMs: toMs(s.queue.ns),
    computeMs: toMs(s.computeInput.ns + s.computeInfer.ns + s.computeOutput.ns),
  }
}

function add(a: Counts, b: Counts): Counts {
  return {
    requests: a.requests + b.requests,
    failures: a.failures + b.failures,
    requestMs: a.requestMs + b.requestMs,
    queueMs: a.queueMs + b.queueMs,
    computeMs: a.computeMs + b.computeMs,
  }
}

function toMs(ns: bigint): number {
  return Number(ns) / 1e6
}
