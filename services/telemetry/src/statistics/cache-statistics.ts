/** Takes the lookups of the requests to one model version; times in nanoseconds. */
export interface CacheObserver {
  /** The cache answered. */
  hit(o: { readonly requestNs: number; readonly lookupNs: number }): void
  /** The response of the execution is there. @param ns - of the lookup and the insertion. */
  missed(ns: number): void
}

/**
 * The hits and misses of one model version, as Triton counts them: a hit is a success that waited for nothing, and neither an
 * inference nor an execution. A miss is counted once its response is there, so that hits and misses are the successes.
 */
export class CacheStatistics implements CacheObserver {
  readonly hits = { count: 0, ns: 0 }
  readonly misses = { count: 0, ns: 0 }
  /** The time of the requests that were hits, from arrival to response, in nanoseconds. */
  hitRequestsNs = 0

  hit(o: { readonly requestNs: number; readonly lookupNs: number }): void {
    add(this.hits, o.lookupNs)
    this.hitRequestsNs += Math.round(o.requestNs)
  }

  missed(ns: number): void {
    add(this.misses, ns)
  }
}

function add(sum: { count: number; ns: number }, ns: number): void {
  sum.count += 1
  sum.ns += Math.round(ns)
}
