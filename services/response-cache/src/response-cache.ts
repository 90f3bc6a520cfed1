import type { NamedTensor, Parameters } from '@tutti/tensor'

/** The only response to a request. Its bytes are read-only: all requests that it answers get views of the same memory. */
export interface CachedResponse {
  readonly outputs: readonly NamedTensor[]
  readonly parameters: Parameters
}

/** The counts of a cache since the process began, and its entries. */
export interface CacheCounts {
  readonly hits: number
  readonly misses: number
  readonly lookupNs: number
  readonly insertionNs: number
  /** Figures about the entries; absent for a cache that others fill too. */
  readonly held?: {
    readonly entries: number
    readonly evictions: number
    /** Share of the memory that is used, 0 to 1. */
    readonly utilization: number
  }
}

/** Keeps responses by the key of their request. It never fails: a lookup that cannot be made is a miss. */
export interface ResponseCache {
  readonly counts: CacheCounts
  /**
   * True if the cache outlives this process and other processes read it. Its keys then name models by their contents; keys of a
   * cache in this process name the load.
   */
  readonly isShared: boolean
  /**
   * Looks up a response.
   *
   * @param key - of `cacheKey`.
   * @returns undefined for a miss; a shared cache may give a promise, which never rejects.
   */
  lookup(key: string): CachedResponse | undefined | Promise<CachedResponse | undefined>
  /** Keeps a copy of a response, which is viewed only until `insert` returns. */
  insert(key: string, response: CachedResponse): void
  close(): Promise<void>
}
