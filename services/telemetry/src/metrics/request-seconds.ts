import { Histogram } from '../histogram.ts'
import type { MetricFamily } from '../metrics-text.ts'
import { BUCKETS_S } from '../statistics/step-measures.ts'
import { nameLabels } from './name-labels.ts'

/** Bounds of the buckets: those of steps, and two for streams that are read for minutes. */
const BOUNDS_S = [...BUCKETS_S, 60, 300]
/** Names that are kept, served or not, while nobody reads the metrics. */
const MIN_KEPT = 1024

/** A request of a client that is over. */
export interface EndedRequest {
  readonly protocol: 'http' | 'grpc'
  /** The name of the model that was found, or that the client wrote; '' if it wrote none. */
  readonly model: string
  /** Undefined if no version was found. */
  readonly version: number | undefined
  /** `OK`, or the code of its error. */
  readonly code: string
  /** Time from the request's arrival until its last response. */
  readonly seconds: number
  /** The trace of a sampled request. */
  readonly traceId: string | undefined
}

interface VersionSeries {
  readonly model: string
  /** '' for requests that found no version. */
  readonly version: string
  readonly http: Map<string, Histogram>
  readonly grpc: Map<string, Histogram>
  /** True if a request has come since the metrics were last read. */
  wasAsked: boolean
}

/**
 * The histogram `tutti_request_seconds`: how long requests of clients take from end to end, by their outcome. Series are bounded
 * by what is served, because clients write any name: one that was never served here counts under none, and what is served no
 * longer is dropped once nobody asks for it.
 */
export class RequestSeconds {
  readonly #isServed: (model: string, version: string) => boolean
  readonly #models = new Map<string, VersionSeries[]>()
  #pruneAt = MIN_KEPT

  /** @param isServed - asked about names that clients write. '' is any version. */
  constructor(isServed: (model: string, version: string) => boolean) {
    this.#isServed = isServed
  }

  observe({ protocol, model, version, code, seconds, traceId }: EndedRequest): void {
    const series = this.#find(version === undefined ? this.#known(model) : model, version)
    series.wasAsked = true
    const byCode = series[protocol]
    let histogram = byCode.get(code)
    if (histogram === undefined) byCode.set(code, (histogram = new Histogram(BOUNDS_S)))
    histogram.observe(seconds, traceId)
  }

  /** Reads the series, and drops those of what is no longer served or asked for. */
  family(): MetricFamily {
    const all = [...this.#models.values()].flat()
    this.#prune()
    return {
      name: 'tutti_request_seconds',
      help: 'Time of a request of a client, from its arrival until its last response',
      type: 'histogram',
      series: all.flatMap(({ model, version, http, grpc }) =>
        Object.entries({ http, grpc }).flatMap(([protocol, byCode]) =>
          [...byCode].flatMap(([code, histogram]) =>
            histogram.series([
              ...nameLabels(model),
              ['version', version],
              ['protocol', protocol],
              ['code', code],
            ]),
          ),
        ),
      ),
    }
  }

  /** Returns the name, or '' for one that was never served. */
  #known(model: string): string {
    return model === '' || this.#models.has(model) || this.#isServed(model, '') ? model : ''
  }

  #find(model: string, number: number | undefined): VersionSeries {
    const version = number === undefined ? '' : String(number)
    const versions = this.#models.get(model)
    const known = versions?.find((one) => one.version === version)
    if (known !== undefined) return known
    if (this.#models.size >= this.#pruneAt) this.#prune()
    const made = { model, version, http: new Map(), grpc: new Map(), wasAsked: true }
    this.#models.set(model, [...(this.#models.get(model) ?? []), made])
    return made
  }

  #prune(): void {
    for (const [model, versions] of this.#models) {
      const kept = versions.filter(
        ({ version, wasAsked }) => wasAsked || model === '' || this.#isServed(model, version),
      )
      for (const one of kept) one.wasAsked = false
      if (kept.length === 0) this.#models.delete(model)
      else if (kept.length < versions.length) this.#models.set(model, kept)
    }
    this.#pruneAt = Math.max(MIN_KEPT, 2 * this.#models.size)
  }
}
