import { type Clock, sampledTraceId, systemClock, type TraceParent } from '@tutti/chassis'
import { isDecoupled, type ModelConfig } from '@tutti/model-config'
import type { RequestObserver, RequestWatch } from '@tutti/tensor'
import { Histogram } from '../histogram.ts'
import type { MetricFamily, MetricSeries } from '../metrics-text.ts'
import { SeriesOfModels } from './series-of-models.ts'

/** Name of the family in a newer Triton; 2.51 has none. */
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
  readonly histogram: Histogram
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
    const made = (): ModelTimes => ({ labels, histogram: new Histogram(buckets, this.#clock) })
    const { histogram } = this.#models.add(labels, made)
    return { began: (_model, _request, { trace }) => this.#watch(histogram, trace) }
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

  #watch(histogram: Histogram, trace: TraceParent | undefined): RequestWatch {
    const startedAt = this.#clock.now()
    let isFirst = true
    return {
      responded: () => {
        if (!isFirst) return
        isFirst = false
        // Whole milliseconds, as in Triton.
        histogram.observe(Math.floor(this.#clock.now() - startedAt), sampledTraceId(trace))
      },
    }
  }
}

/** Lists the series of a model's histogram in Triton's order. */
function toSeries({ labels, histogram }: ModelTimes): MetricSeries[] {
  return [
    { suffix: '_count', labels, value: histogram.count },
    { suffix: '_sum', labels, value: histogram.sum },
    ...histogram.buckets.map(({ le, value, exemplar }): MetricSeries => {
      return { suffix: '_bucket', labels: [...labels, le], value, exemplar }
    }),
  ]
}
