import { countRates, type Rates } from '@tutti/console'
import type { ModelReading, TopReading } from './reading.ts'

/** The figures of a model's version between two readings. An unknown figure is undefined or NaN. */
export interface ModelRow {
  readonly model: string
  readonly namespace: string | undefined
  readonly version: string
  readonly pending: number
  /** Rates between the readings; undefined without an earlier reading, or if the counters began anew. */
  readonly rates: Rates | undefined
  /** Requests in flight on average, computed from the rate and the duration of requests that ended. */
  readonly inFlight: number | undefined
  /** Quantiles of the durations of requests in the last minute. */
  readonly p50Ms: number | undefined
  readonly p99Ms: number | undefined
  /** Quantiles of the times to first responses, between the readings. */
  readonly firstResponseP50Ms: number | undefined
  readonly firstResponseP99Ms: number | undefined
}

/** Computes the rows of all models, the busiest first and then by name. */
export function modelRows(now: TopReading, before: TopReading | undefined): readonly ModelRow[] {
  const elapsedMs = before === undefined ? 0 : now.atMs - before.atMs
  return [...now.models]
    .map(([key, model]) => toRow(model, before?.models.get(key), elapsedMs))
    .toSorted(compare)
}

function toRow(now: ModelReading, before: ModelReading | undefined, elapsedMs: number): ModelRow {
  const { model, namespace, version, pending } = now
  const rates = countRates(now.counts, before?.counts, elapsedMs)
  const firstResponse = (q: number): number | undefined =>
    bucketQuantile(now.firstResponses, before?.firstResponses, q)
  return {
    model,
    namespace,
    version,
    pending,
    rates,
    inFlight: rates && inFlightOf(rates),
    p50Ms: now.quantiles.get(0.5),
    p99Ms: now.quantiles.get(0.99),
    firstResponseP50Ms: firstResponse(0.5),
    firstResponseP99Ms: firstResponse(0.99),
  }
}

/** Computes the requests in flight by Little's law. */
function inFlightOf({ requestsPerSecond, requestMs }: Rates): number {
  return requestsPerSecond === 0 ? 0 : (requestsPerSecond * requestMs) / 1000
}

function compare(a: ModelRow, b: ModelRow): number {
  const busy = ({ rates }: ModelRow): number =>
    rates === undefined ? 0 : rates.requestsPerSecond + rates.failuresPerSecond
  return busy(b) - busy(a) || order(a.model, b.model) || order(a.version, b.version)
}

function order(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

/**
 * Estimates a quantile from cumulative buckets, as Prometheus does: values are evenly spread within a bucket, and values above
 * all finite bounds count as the highest bound.
 *
 * @param now - upper bound -> number of values up to the bound.
 * @returns undefined without an earlier reading or new values, or if the counters began anew.
 */
export function bucketQuantile(
  now: ReadonlyMap<number, number>,
  before: ReadonlyMap<number, number> | undefined,
  q: number,
): number | undefined {
  const bounds = [...now.keys()].toSorted((a, b) => a - b)
  const counts = bounds.map((bound) => (now.get(bound) ?? 0) - (before?.get(bound) ?? 0))
  const all = counts.at(-1) ?? 0
  // Counters that went back began anew.
  if (before === undefined || all <= 0 || counts.some((count) => count < 0)) return undefined
  const rank = q * all
  const index = counts.findIndex((count) => count >= rank)
  const [lower, upper] = [bounds[index - 1] ?? 0, bounds[index] ?? Number.POSITIVE_INFINITY]
  if (!Number.isFinite(upper)) return lower
  const [below, up] = [counts[index - 1] ?? 0, counts[index] ?? 0]
  return up === below ? upper : lower + ((upper - lower) * (rank - below)) / (up - below)
}
