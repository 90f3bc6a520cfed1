import { type Clock, systemClock } from '@tutti/chassis'
import { bug } from '@tutti/errors'
import type { RequestEnd, RequestObserver, RequestWatch, StepTimes } from '@tutti/tensor'
import type { MetricFamily, MetricSeries } from '../metrics-text.ts'
import type { CacheObserver } from '../statistics/cache-statistics.ts'
import { SeriesOfModels } from './series-of-models.ts'

/** Number of parts of the window. As in Triton, quantiles cover the last minute, which moves in parts of 12 s. */
const PARTS = 5
const PART_MS = 12_000
/** Values that are kept of one part, a fair sample if there are more. */
const MAX_SAMPLES = 1024

type ReadNs = (end: RequestEnd, times: StepTimes) => number

const READERS = {
  request: [
    'Summary of inference request duration in microseconds (includes cached requests)',
    ({ elapsedNs }) => elapsedNs,
  ],
  queue: [
    'Summary of inference queuing duration in microseconds (includes cached requests)',
    (_, { queueNs }) => queueNs,
  ],
  compute_input: [
    'Cumulative compute input duration in microseconds (does not include cached requests)',
    (_, { computeInputNs }) => computeInputNs,
  ],
  compute_infer: [
    'Cumulative compute inference duration in microseconds (does not include cached requests)',
    (_, { computeInferNs }) => computeInferNs,
  ],
  compute_output: [
    'Cumulative inference compute output duration in microseconds (does not include cached requests)',
    (_, { computeOutputNs }) => computeOutputNs,
  ],
} as const satisfies Record<string, readonly [help: string, read: ReadNs]>

type What = keyof typeof READERS

const CACHE_HELP = {
  hit: 'Summary of cache hit counts/durations per model, in microseconds.',
  miss: 'Summary of cache miss counts/durations per model, in microseconds.',
} as const

interface ModelSummaries {
  readonly labels: MetricSeries['labels']
  readonly of: Readonly<Record<What, SlidingSamples>>
  /** The cache summaries of a model whose responses are cached. */
  cache?: Readonly<Record<keyof typeof CACHE_HELP, SlidingSamples>>
}

export interface LatencySummariesOptions {
  /** Quantiles, each from 0 to 1. */
  readonly quantiles: readonly number[]
  readonly clock?: Pick<Clock, 'now'>
  readonly random?: () => number
}

/** The summaries `nv_inference_*_summary_us` of tritonserver's `--metrics-config summary_latencies=true`. */
export class LatencySummaries {
  readonly #options: LatencySummariesOptions
  readonly #models = new SeriesOfModels<ModelSummaries>()

  constructor(o: LatencySummariesOptions) {
    this.#options = o
  }

  /** Series appear, unless they are there. @returns counts the successes of a model with these labels. */
  add(labels: MetricSeries['labels']): RequestObserver {
    const known = this.#models.add(labels, () => ({
      labels,
      of: this.#newSamples(),
    }))
    const watch: RequestWatch = {
      ended: (end) => {
        const { error, times } = end
        if (error !== undefined || times === undefined) return
        for (const what of WHATS) known.of[what].observe(READERS[what][1](end, times) / 1000)
      },
    }
    return { began: () => watch }
  }

  /**
   * Adds counts of cache hits and misses to the series that `add` has made. @returns the observer of a model with these labels.
   */
  addCache(labels: MetricSeries['labels']): CacheObserver {
    const known = this.#models.find(labels)
    if (known === undefined) throw bug('summaries of a cache come after those of its model')
    known.cache ??= {
      hit: new SlidingSamples(this.#options),
      miss: new SlidingSamples(this.#options),
    }
    const { of, cache } = known
    return {
      hit: ({ requestNs, lookupNs }) => {
        of.request.observe(requestNs / 1000)
        of.queue.observe(0)
        cache.hit.observe(lookupNs / 1000)
      },
      missed: (ns) => cache.miss.observe(ns / 1000),
    }
  }

  /** Takes back one `add`; series vanish with the last one. */
  remove(labels: MetricSeries['labels']): void {
    this.#models.remove(labels)
  }

  families(): readonly MetricFamily[] {
    const models = this.#models.values
    const family = (
      name: string,
      help: string,
      find: (m: ModelSummaries) => SlidingSamples | undefined,
    ): MetricFamily => ({
      name,
      help,
      type: 'summary',
      series: models.flatMap((m) => find(m)?.series(m.labels, this.#options.quantiles) ?? []),
    })
    const hasCache = models.some(({ cache }) => cache !== undefined)
    return [
      ...WHATS.map((what) =>
        family(`nv_inference_${what}_summary_us`, READERS[what][0], (m) => m.of[what]),
      ),
      ...(hasCache ? CACHE_WHATS : []).map((what) =>
        family(`nv_cache_${what}_summary_per_model`, CACHE_HELP[what], (m) => m.cache?.[what]),
      ),
    ]
  }

  #newSamples(): ModelSummaries['of'] {
    const made = (): SlidingSamples => new SlidingSamples(this.#options)
    return {
      request: made(),
      queue: made(),
      compute_input: made(),
      compute_infer: made(),
      compute_output: made(),
    }
  }
}

const CACHE_WHATS = ['hit', 'miss'] as const
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- keys() forgets the keys of a constant
const WHATS = Object.keys(READERS) as readonly What[]

interface Part {
  readonly startedAt: number
  readonly values: number[]
  seen: number
}

class SlidingSamples {
  readonly #clock: Pick<Clock, 'now'>
  readonly #random: () => number
  #parts: Part[] = []
  #count = 0
  #sum = 0

  constructor({ clock = systemClock, random = Math.random }: LatencySummariesOptions) {
    this.#clock = clock
    this.#random = random
  }

  observe(value: number): void {
    this.#count += 1
    this.#sum += value
    const part = this.#part()
    part.seen += 1
    if (part.values.length < MAX_SAMPLES) part.values.push(value)
    else {
      const place = Math.floor(this.#random() * part.seen)
      if (place < MAX_SAMPLES) part.values[place] = value
    }
  }

  /** Quantiles are NaN while there is nothing. */
  series(labels: MetricSeries['labels'], quantiles: readonly number[]): readonly MetricSeries[] {
    this.#dropOld(this.#clock.now())
    const values = this.#parts.flatMap((part) => part.values).toSorted((a, b) => a - b)
    return [
      { labels, suffix: '_count', value: this.#count },
      { labels, suffix: '_sum', value: Math.round(this.#sum) },
      ...quantiles.map((quantile) => ({
        labels: [...labels, ['quantile', String(quantile)] as const],
        value: Math.round(valueAt(values, quantile)),
      })),
    ]
  }

  #part(): Part {
    const now = this.#clock.now()
    const last = this.#parts.at(-1)
    if (last !== undefined && now - last.startedAt < PART_MS) return last
    this.#dropOld(now)
    const part = { startedAt: now, values: [], seen: 0 }
    this.#parts.push(part)
    return part
  }

  #dropOld(now: number): void {
    this.#parts = this.#parts.filter(({ startedAt }) => now - startedAt < PARTS * PART_MS)
  }
}

function valueAt(sorted: readonly number[], quantile: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))] ?? Number.NaN
}
