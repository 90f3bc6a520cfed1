import { type Clock, sampledTraceId, systemClock, type TraceParent } from '@tutti/chassis'
import { isDecoupled, type ModelConfig } from '@tutti/model-config'
import type { RequestObserver, RequestWatch } from '@tutti/tensor'
import type { Exemplar, MetricFamily, MetricSeries } from '../metrics-text.ts'
import { SeriesOfModels } from './series-of-models.ts'

/** As a newer Triton calls it: 2.51 has none. */
export const FIRST_RESPONSE_FAMILY = 'nv_inference_first_response_histogram_ms'
/** Triton's, in milliseconds. */
const DEFAULT_BUCKETS = [100, 500, 2000, 5000]

/** Bounds in milliseconds: the configuration's own, or Triton's. Undefined for a model that has no such series: one that is not decoupled. */
export function firstResponseBuckets(
  config: ModelConfig | undefined,
): readonly number[] | undefined {
  if (config === undefined || !isDecoupled(config)) return undefined
  const own = config.model_metrics?.metric_control.findLast(
    (control) => control.metric_identifier?.family === FIRST_RESPONSE_FAMILY,
  )
  return own?.histogram_options?.buckets ?? DEFAULT_BUCKETS
}

interface ModelTimes {
  readonly labels: MetricSeries['labels']
  readonly buckets: readonly number[]
  /** By bucket, each value once; the last one is what is over all bounds. */
  readonly counts: number[]
  /** By bucket, the last sampled request. */
  readonly exemplars: (Exemplar | undefined)[]
  sum: number
}

/** The histogram of tritonserver's `--metrics-config histogram_latencies=true`: how long decoupled models and ensembles take to their first response. */
export class FirstResponses {
  readonly #clock: Pick<Clock, 'now' | 'epochMs'>
  readonly #models = new SeriesOfModels<ModelTimes>()

  constructor(clock: Pick<Clock, 'now' | 'epochMs'> = systemClock) {
    this.#clock = clock
  }

  /** Series appear, unless they are there. @returns observes the requests of a model with these labels from now on. */
  add(labels: MetricSeries['labels'], buckets: readonly number[]): RequestObserver {
    const times = this.#models.add(labels, () => {
      const counts = [...buckets, Number.POSITIVE_INFINITY].map(() => 0)
      return { labels, buckets, counts, exemplars: [], sum: 0 }
    })
    return { began: (_model, _request, { trace }) => this.#watch(times, trace) }
  }

  /** Takes back one `add`; series vanish with the last one. */
  remove(labels: MetricSeries['labels']): void {
    this.#models.remove(labels)
  }

  family(): MetricFamily {
    return {
      name: FIRST_RESPONSE_FAMILY,
      help: 'Duration from request to first response in milliseconds',
      type: 'histogram',
      series: this.#models.values.flatMap(toSeries),
    }
  }

  #watch(times: ModelTimes, trace: TraceParent | undefined): RequestWatch {
    const startedAt = this.#clock.now()
    let isFirst = true
    return {
      responded: () => {
        if (isFirst) this.#observe(times, Math.floor(this.#clock.now() - startedAt), trace)
        isFirst = false
      },
    }
  }

  /** @param ms - whole, as in Triton. */
  #observe(times: ModelTimes, ms: number, trace: TraceParent | undefined): void {
    const found = times.buckets.findIndex((bound) => ms <= bound)
    const bucket = found === -1 ? times.buckets.length : found
    times.counts[bucket] = (times.counts[bucket] ?? 0) + 1
    times.sum += ms
    const traceId = sampledTraceId(trace)
    if (traceId === undefined) return
    times.exemplars[bucket] = { traceId, value: ms, atMs: this.#clock.epochMs() }
  }
}

function toSeries({ labels, buckets, counts, exemplars, sum }: ModelTimes): MetricSeries[] {
  let count = 0
  const cumulated = counts.map((counted, i): MetricSeries => {
    count += counted
    const bound = buckets[i] ?? Number.POSITIVE_INFINITY
    const le = ['le', bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound)] as const
    const exemplar = exemplars[i]
    return { suffix: '_bucket', labels: [...labels, le], value: count, exemplar }
  })
  return [
    { suffix: '_count', labels, value: count },
    { suffix: '_sum', labels, value: sum },
    ...cumulated,
  ]
}
