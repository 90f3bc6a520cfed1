import type { Counts } from '@tutti/console'
import { parseMetrics, type Sample } from './parse-metrics.ts'

/** The figures of a model's version in a server's metrics. */
export interface ModelReading {
  readonly model: string
  /** Repository of the model, if several repositories have its name. */
  readonly namespace: string | undefined
  readonly version: string
  /** Counts since the model was loaded. */
  readonly counts: Counts
  /** Requests that wait for their execution. */
  readonly pending: number
  /** Durations of requests in the last minute: quantile -> milliseconds. */
  readonly quantiles: ReadonlyMap<number, number>
  /** Times to first responses since the load: upper bound in milliseconds -> number of times up to the bound. */
  readonly firstResponses: ReadonlyMap<number, number>
}

/** One look at the metrics of a server. */
export interface TopReading {
  readonly atMs: number
  /** Models by a key of name, namespace and version. */
  readonly models: ReadonlyMap<string, ModelReading>
  /** Gauges of the whole process or host, by name of the metric. */
  readonly gauges: ReadonlyMap<string, number>
}

type Sums = { -readonly [K in keyof Counts]: Counts[K] }
interface Building extends ModelReading {
  readonly counts: Sums
  pending: number
  readonly quantiles: Map<number, number>
  readonly firstResponses: Map<number, number>
}

const US_OF_MS = 1000

type Add = (model: Building, sample: Sample) => void

const addUs =
  (key: keyof Counts): Add =>
  ({ counts }, { value }) => {
    counts[key] += value / US_OF_MS
  }

const FAMILIES: Readonly<Record<string, Add>> = {
  nv_inference_request_success: ({ counts }, { value }) => void (counts.requests += value),
  nv_inference_request_failure: ({ counts }, { value }) => void (counts.failures += value),
  nv_inference_request_duration_us: addUs('requestMs'),
  nv_inference_queue_duration_us: addUs('queueMs'),
  nv_inference_compute_input_duration_us: addUs('computeMs'),
  nv_inference_compute_infer_duration_us: addUs('computeMs'),
  nv_inference_compute_output_duration_us: addUs('computeMs'),
  nv_inference_pending_request_count: (model, { value }) => void (model.pending += value),
  nv_inference_request_summary_us: ({ quantiles }, { labels, value }) => {
    const quantile = labels.get('quantile')
    if (quantile !== undefined) quantiles.set(Number(quantile), value / US_OF_MS)
  },
  nv_inference_first_response_histogram_ms_bucket: ({ firstResponses }, { labels, value }) => {
    const bound = labels.get('le') ?? ''
    firstResponses.set(bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound), value)
  },
}

const GAUGES = new Set([
  'process_resident_memory_bytes',
  'nv_cpu_utilization',
  'nv_cpu_memory_used_bytes',
  'nv_cpu_memory_total_bytes',
])

const isWanted = (name: string): boolean => Object.hasOwn(FAMILIES, name) || GAUGES.has(name)

/** Parses the metrics of a server, Tutti's or Triton's. @param atMs - time of the reading, for rates. */
export function parseReading(text: string, atMs: number): TopReading {
  const models = new Map<string, Building>()
  const gauges = new Map<string, number>()
  for (const sample of parseMetrics(text, isWanted)) {
    const add = FAMILIES[sample.name]
    if (add === undefined) gauges.set(sample.name, sample.value)
    else add(find(models, sample.labels), sample)
  }
  return { atMs, models, gauges }
}

function find(models: Map<string, Building>, labels: Sample['labels']): Building {
  const [model = '', namespace, version = ''] = ['model', 'namespace', 'version'].map((name) =>
    labels.get(name),
  )
  const key = JSON.stringify([model, namespace, version])
  const known = models.get(key)
  if (known !== undefined) return known
  const made = {
    model,
    namespace,
    version,
    counts: { requests: 0, failures: 0, requestMs: 0, queueMs: 0, computeMs: 0 },
    pending: 0,
    quantiles: new Map(),
    firstResponses: new Map(),
  }
  models.set(key, made)
  return made
}
