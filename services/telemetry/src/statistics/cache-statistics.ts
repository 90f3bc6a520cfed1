/** The observer of cache summaries; times in nanoseconds. */
export interface CacheObserver {
  hit(o: { readonly requestNs: number; readonly lookupNs: number }): void
  /** @param ns - of the lookup and the insertion. */
  miss(ns: number): void
}

/**
 * The hits and misses of one model version, as Triton counts them: a hit is a success that waited for nothing, and neither an
 * inference nor an execution. A miss is counted once its response is there, so that hits and misses are the successes.
 */
export class CacheStatistics {
  readonly hits = { count: 0, ns: 0 }
  readonly misses = { count: 0, ns: 0 }
  /** The time of the requests that were hits, from arrival to response, in nanoseconds. */
  hitRequestsNs = 0
  observer: CacheObserver | undefined

  recordHit(o: { readonly requestNs: number; readonly lookupNs: number }): void {
    add(this.hits, o.lookupNs)
    this.hitRequestsNs += Math.round(o.requestNs)
    this.observer?.hit(o)
  }

  recordMiss(ns: number): void {
    add(this.misses, ns)
    this.observer?.miss(ns)
  }
}

function add(sum: { count: number; ns: number }, ns: number): void {
  sum.count += 1
  sum.ns += Math.round(ns)
}
