import { createMetrics, type Logger, type Metrics, systemClock } from '@tutti/chassis'
import type { ModelStatistics } from '@tutti/model-config'
import type { RequestObserver, StepCount } from '@tutti/tensor'
import {
  formatMetrics,
  type MetricFamily,
  type MetricSeries,
  toLabelName,
} from '../metrics-text.ts'
import {
  beginWatches,
  logObserverFailures,
  type ObserverFailed,
} from '../requests/join-observers.ts'
import type { CacheObserver } from '../statistics/cache-statistics.ts'
import { FAILURE_REASONS } from '../statistics/failure-reasons.ts'
import { type StatisticsRecorder, StepHistograms } from '../statistics/statistics.ts'
import type { StepLabels } from '../statistics/step-measures.ts'
import { type StepTotals, stepTotals } from '../statistics/step-totals.ts'
import { FirstResponses } from './first-responses.ts'
import { type HostReading, hostFamilies, readHost } from './host-metrics.ts'
import { LatencySummaries } from './latency-summaries.ts'
import type { LatencyMetrics } from './metrics-flags.ts'
import { MODEL_CACHE_FAMILIES, toMicroseconds } from './model-cache-families.ts'
import { nameLabels } from './name-labels.ts'
import { StepCounts } from './step-counts.ts'
import { stepFamilies } from './step-families.ts'

/** How a model's series are labelled. */
export interface ModelMetricLabels {
  /** One that is qualified becomes two labels, as in Triton. */
  readonly name: string
  /** Version that is served; that of an ensemble is the constant "1", as in Triton (triton-semantics 4.11). */
  readonly version: string
  /** The config's `metric_tags`; each key becomes a label with `_` before it. */
  readonly tags?: Readonly<Record<string, string>>
  /** How long the load took, for nv_model_load_duration_secs. */
  readonly loadSeconds?: number
  /** Bounds of its histogram of first responses, in milliseconds; absent for a model that has none. */
  readonly buckets?: readonly number[] | undefined
}

export interface ServerMetricsOptions {
  /** The process's own metrics, printed after Triton's; a new empty set if absent. */
  readonly metrics?: Metrics
  /** Reads the host; the operating system if absent. */
  readonly host?: () => HostReading
  /** Counters alone if absent. */
  readonly latencies?: LatencyMetrics
  /** tritonserver's `--pinned-memory-pool-byte-size`; its default if absent. */
  readonly pinnedPoolBytes?: number | undefined
  /** Gets what observers of requests throw; nobody does if absent. */
  readonly log?: Logger
}

type ReadFamilies = () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>

interface ModelEntry {
  readonly labels: MetricSeries['labels']
  readonly recorder: StatisticsRecorder
  readonly loadSeconds: number
  readonly summaries: RequestObserver | undefined
  readonly cacheSummaries: CacheObserver | undefined
  readonly firstResponses: RequestObserver | undefined
}

/** The metrics of a server: Triton's `nv_*` read from the recorders at each scrape, and `tutti_step_*` of each step. */
export class ServerMetrics {
  readonly contentType: string
  readonly #models = new Map<StatisticsRecorder, ModelEntry>()
  readonly #metrics: Metrics
  readonly #host: () => readonly MetricFamily[]
  readonly #hasCounters: boolean
  readonly #summaries: LatencySummaries | undefined
  readonly #firstResponses: FirstResponses | undefined
  readonly #pool: readonly MetricFamily[]
  readonly #steps = new StepHistograms()
  /** Counts one step request. @returns where its time went. */
  readonly observeStep = this.#steps.observe
  readonly #stepCounts = new StepCounts()
  readonly #added: ReadFamilies[] = []
  readonly #observerFailed: ObserverFailed | undefined

  constructor(o: ServerMetricsOptions = {}) {
    this.#metrics = o.metrics ?? createMetrics()
    this.#host = hostFamilies(o.host ?? readHost)
    this.contentType = this.#metrics.contentType
    const { hasCounters = true, hasHistograms = false, quantiles } = o.latencies ?? {}
    this.#firstResponses = hasHistograms ? new FirstResponses() : undefined
    this.#pool = poolFamilies(o.pinnedPoolBytes ?? PINNED_POOL_BYTES)
    this.#hasCounters = hasCounters
    this.#summaries = quantiles && new LatencySummaries({ quantiles })
    this.#observerFailed = o.log && logObserverFailures(o.log, { clock: systemClock })
  }

  /** Whether decoupled models have a histogram of their first responses. */
  get hasHistograms(): boolean {
    return this.#firstResponses !== undefined
  }

  /** Series of the model appear, at 0 if nothing was recorded yet. */
  addModel(recorder: StatisticsRecorder, model: ModelMetricLabels): void {
    const tags = Object.entries(model.tags ?? {})
      .map(([key, value]) => [`_${toLabelName(key)}`, value] as const)
      // Two keys may become one label name, which Prometheus would refuse: the first one stays.
      .filter(([name], i, all) => all.findIndex(([other]) => other === name) === i)
    const labels = [...nameLabels(model.name), ['version', model.version], ...tags] as const
    const { buckets, loadSeconds = 0 } = model
    this.#models.set(recorder, {
      labels,
      recorder,
      loadSeconds,
      summaries: this.#summaries?.add(labels),
      cacheSummaries: recorder.cache && this.#summaries?.addCache(labels),
      firstResponses: buckets && this.#firstResponses?.add(labels, buckets),
    })
  }

  /** Removes the series of a model that is unloaded. */
  removeModel(recorder: StatisticsRecorder): void {
    const entry = this.#models.get(recorder)
    if (entry === undefined) return
    this.#models.delete(recorder)
    this.#summaries?.remove(entry.labels)
    if (entry.firstResponses !== undefined) this.#firstResponses?.remove(entry.labels)
  }

  /**
   * Observes the requests to a model version: for its statistics, and for what else is shown of it between `addModel` and
   * `removeModel`.
   */
  observerOf(recorder: StatisticsRecorder): RequestObserver {
    if (this.#summaries === undefined && this.#firstResponses === undefined) return recorder
    const began: RequestObserver['began'] = (...begun) => {
      const { summaries, firstResponses } = this.#models.get(recorder) ?? {}
      return beginWatches([recorder, summaries, firstResponses], begun, this.#observerFailed)
    }
    return { began }
  }

  /** Observes the cache of a model version; undefined for one that has none. */
  cacheObserverOf(recorder: StatisticsRecorder): CacheObserver | undefined {
    const { cache } = recorder
    if (cache === undefined || this.#summaries === undefined) return cache
    const summaries = (): CacheObserver | undefined => this.#models.get(recorder)?.cacheSummaries
    return {
      hit: (times) => {
        cache.hit(times)
        summaries()?.hit(times)
      },
      missed: (ns) => {
        cache.missed(ns)
        summaries()?.missed(ns)
      },
    }
  }

  /** Adds the step's series, at 0. */
  addStep(labels: StepLabels): void {
    this.#steps.add(labels)
    this.#stepCounts.add(labels)
  }

  /** Drops the step's series, when its ensemble is unloaded or changed. */
  removeStep(labels: StepLabels): void {
    this.#steps.remove(labels)
    this.#stepCounts.remove(labels)
  }

  /** Finds what was counted of each step of an ensemble so far. */
  stepTotals(ensemble: string): readonly StepTotals[] {
    return stepTotals(this.#steps, ensemble)
  }

  /** Counts what was done around a call of a step. */
  countStep(labels: StepLabels, what: StepCount, count = 1): void {
    this.#stepCounts.count(labels, what, count)
  }

  /** Prints further families at each scrape, which others count. */
  addFamilies(read: ReadFamilies): void {
    this.#added.push(read)
  }

  /** Renders everything as Prometheus text. @param o.hasExemplars - see formatMetrics. */
  async render(o: { readonly hasExemplars?: boolean } = {}): Promise<string> {
    const added = await Promise.all(this.#added.map(async (read) => read()))
    const models = [...this.#models.values()].map((entry) => ({
      ...entry,
      statistics: entry.recorder.snapshot(),
    }))
    const families = [
      ...modelFamilies(models).filter(({ name }) => this.#hasCounters || !isLatency(name)),
      ...(this.#summaries?.families() ?? []),
      ...(this.#firstResponses ? [this.#firstResponses.family()] : []),
      ...this.#pool,
      ...this.#host(),
      ...stepFamilies(this.#steps),
      ...this.#stepCounts.families(),
      ...added.flat(),
    ]
    return formatMetrics(families, o) + (await this.#metrics.render())
  }
}

function isLatency(name: string): boolean {
  return name.startsWith('nv_inference_') && name.endsWith('_duration_us')
}

/** The default of `--pinned-memory-pool-byte-size`. */
const PINNED_POOL_BYTES = 268_435_456

/**
 * Makes the families of pinned memory, which does not exist here. A Triton without a GPU has none either, and prints the
 * requested size all the same.
 */
function poolFamilies(totalBytes: number): readonly MetricFamily[] {
  const bytes = { total: totalBytes, used: 0 }
  return Object.entries(bytes).map(([what, value]) => ({
    name: `nv_pinned_memory_pool_${what}_bytes`,
    help: `Pinned memory pool ${what} memory size, in bytes`,
    type: 'gauge',
    series: [{ labels: [], value }],
  }))
}

interface ModelReading extends ModelEntry {
  readonly statistics: ModelStatistics
}

const DURATIONS = [
  [
    'request',
    'Cumulative inference request duration in microseconds (includes cached requests)',
    (s: ModelStatistics) => s.success,
  ],
  [
    'queue',
    'Cumulative inference queuing duration in microseconds (includes cached requests)',
    (s: ModelStatistics) => s.queue,
  ],
  [
    'compute_input',
    'Cumulative compute input duration in microseconds (does not include cached requests)',
    (s: ModelStatistics) => s.computeInput,
  ],
  [
    'compute_infer',
    'Cumulative compute inference duration in microseconds (does not include cached requests)',
    (s: ModelStatistics) => s.computeInfer,
  ],
  [
    'compute_output',
    'Cumulative inference compute output duration in microseconds (does not include cached requests)',
    (s: ModelStatistics) => s.computeOutput,
  ],
] as const

function modelFamilies(models: readonly ModelReading[]): readonly MetricFamily[] {
  const of = (
    type: MetricFamily['type'],
    name: string,
    help: string,
    read: (model: ModelReading) => number,
    from = models,
  ): MetricFamily => ({
    name,
    help,
    type,
    series: sumEqual(from.map((model) => ({ labels: model.labels, value: read(model) }))),
  })
  const cached = models.filter(({ recorder }) => recorder.cache !== undefined)
  const cacheFamilies = cached.length === 0 ? [] : MODEL_CACHE_FAMILIES
  return [
    of(
      'counter',
      'nv_inference_request_success',
      'Number of successful inference requests, all batch sizes',
      (m) => Number(m.statistics.success.count),
    ),
    failureFamily(models),
    of(
      'counter',
      'nv_inference_count',
      'Number of inferences performed (does not include cached requests)',
      (m) => Number(m.statistics.inferenceCount),
    ),
    of(
      'counter',
      'nv_inference_exec_count',
      'Number of model executions performed (does not include cached requests)',
      (m) => Number(m.statistics.executionCount),
    ),
    ...DURATIONS.map(([what, help, read]) =>
      of('counter', `nv_inference_${what}_duration_us`, help, (m) =>
        toMicroseconds(read(m.statistics)),
      ),
    ),
    of(
      'gauge',
      'nv_inference_pending_request_count',
      'Instantaneous number of pending requests awaiting execution per-model.',
      (m) => m.recorder.pending,
    ),
    of('gauge', 'nv_model_load_duration_secs', 'Model load time in seconds', (m) => m.loadSeconds),
    ...cacheFamilies.map(([name, help, read]) =>
      of('counter', name, help, (m) => read(m.statistics), cached),
    ),
  ]
}

function failureFamily(models: readonly ModelReading[]): MetricFamily {
  return {
    name: 'nv_inference_request_failure',
    help: 'Number of failed inference requests, all batch sizes',
    type: 'counter',
    series: sumEqual(
      models.flatMap(({ labels, recorder }) =>
        FAILURE_REASONS.map((reason) => ({
          labels: [...labels, ['reason', reason] as const],
          value: recorder.failures(reason),
        })),
      ),
    ),
  }
}

/**
 * Sums series of equal labels. Versions of one ensemble have the same labels (triton-semantics 4.11), and Prometheus takes a
 * series only once.
 */
function sumEqual(series: readonly MetricSeries[]): readonly MetricSeries[] {
  const sums = new Map<string, MetricSeries>()
  for (const one of series) {
    const key = JSON.stringify(one.labels)
    const value = one.value + (sums.get(key)?.value ?? 0)
    sums.set(key, { labels: one.labels, value })
  }
  return [...sums.values()]
}
