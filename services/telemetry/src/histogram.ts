import { systemClock } from '@tutti/chassis'
import type { Exemplar, MetricSeries } from './metrics-text.ts'

/** One bucket as Prometheus has it. */
export interface HistogramBucket {
  readonly le: readonly ['le', string]
  /** Values up to its bound, those of the buckets before it included. */
  readonly value: number
  readonly exemplar: MetricSeries['exemplar']
}

/** Counts values by buckets. prom-client sorts and hashes labels at each of its observations, which takes microseconds. */
export class Histogram {
  /** Number of values, by bucket; each value counts in one bucket. The last bucket holds the values above all bounds. */
  readonly counts: number[]
  sum = 0
  readonly #bounds: readonly number[]
  readonly #clock: { epochMs(): number }
  /** Last sampled request, by bucket. */
  #exemplars: (Exemplar | undefined)[] | undefined

  /** @param bounds - ascending, each within its bucket. */
  constructor(bounds: readonly number[], clock: { epochMs(): number } = systemClock) {
    this.#bounds = bounds
    this.#clock = clock
    this.counts = [...bounds, Number.POSITIVE_INFINITY].map(() => 0)
  }

  get count(): number {
    return this.counts.reduce((sum, counted) => sum + counted, 0)
  }

  /** @param traceId - of a sampled request. */
  observe(value: number, traceId: string | undefined): void {
    let bucket = 0
    for (const bound of this.#bounds) {
      if (value <= bound) break
      bucket += 1
    }
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1
    this.sum += value
    if (traceId === undefined) return
    this.#exemplars ??= []
    this.#exemplars[bucket] = { traceId, value, atMs: this.#clock.epochMs() }
  }

  get buckets(): readonly HistogramBucket[] {
    let value = 0
    return this.counts.map((counted, i) => {
      value += counted
      const bound = this.#bounds[i]
      const le = ['le', bound === undefined ? '+Inf' : String(bound)] as const
      return { le, value, exemplar: this.#exemplars?.[i] }
    })
  }

  /** Lists the series of a histogram with these labels, as prom-client orders them. */
  series(labels: MetricSeries['labels']): readonly MetricSeries[] {
    const buckets = this.buckets.map(({ le, value, exemplar }): MetricSeries => {
      return { suffix: '_bucket', labels: [le, ...labels], value, exemplar }
    })
    return [
      ...buckets,
      { suffix: '_sum', labels, value: this.sum },
      { suffix: '_count', labels, value: this.count },
    ]
  }
}
