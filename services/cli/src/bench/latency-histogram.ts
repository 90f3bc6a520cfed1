/** Buckets of one octave: a bucket is at most 1/128 as wide as its values. */
const PER_OCTAVE = 128
/** 2^47 ns, 39 hours; what is longer is counted there. */
const OCTAVES = 40
const NS_OF_MS = 1e6

/**
 * Counts latencies in buckets whose width grows with the value, as HdrHistogram does: 42 KB, however many there are. Quantiles
 * are exact to 0.4 %, least, greatest and mean to the nanosecond.
 */
export class LatencyHistogram {
  readonly #counts = new Float64Array(PER_OCTAVE * (OCTAVES + 1))
  #count = 0
  #sumNs = 0
  #minNs = Number.POSITIVE_INFINITY
  #maxNs = 0

  get count(): number {
    return this.#count
  }

  /** Mean latency in milliseconds; undefined if nothing was counted. */
  get meanMs(): number | undefined {
    return this.#count === 0 ? undefined : this.#sumNs / this.#count / NS_OF_MS
  }

  /** Counts one latency. @param ms - milliseconds; a negative value counts as 0. */
  record(ms: number): void {
    const ns = Math.max(0, Math.round(ms * NS_OF_MS))
    const bucket = Math.min(bucketOf(ns), this.#counts.length - 1)
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1
    this.#count += 1
    this.#sumNs += ns
    this.#minNs = Math.min(this.#minNs, ns)
    this.#maxNs = Math.max(this.#maxNs, ns)
  }

  /**
   * Finds the quantile of the latencies in milliseconds, by nearest rank.
   *
   * @param q - share of the latencies that are not greater: 0 gives the least latency, 1 the greatest.
   * @returns undefined if nothing was counted.
   */
  quantileMs(q: number): number | undefined {
    if (this.#count === 0) return undefined
    const rank = Math.max(1, Math.ceil(q * this.#count))
    if (rank >= this.#count) return this.#maxNs / NS_OF_MS
    let seen = 0
    const bucket = this.#counts.findIndex((count) => (seen += count) >= rank)
    const ns = Math.min(Math.max(middleOf(bucket), this.#minNs), this.#maxNs)
    return ns / NS_OF_MS
  }
}

function bucketOf(ns: number): number {
  if (ns < PER_OCTAVE) return ns
  const octave = Math.floor(Math.log2(ns)) - Math.log2(PER_OCTAVE)
  return PER_OCTAVE * octave + Math.floor(ns / 2 ** octave)
}

function middleOf(bucket: number): number {
  if (bucket < PER_OCTAVE) return bucket
  const octave = Math.floor(bucket / PER_OCTAVE) - 1
  const width = 2 ** octave
  return (bucket - PER_OCTAVE * octave) * width + (width - 1) / 2
}
