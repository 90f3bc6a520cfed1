import type { NamedTensor, Parameters } from '@tutti/tensor'

/** The response of a request that had only one. Its bytes are read-only: every request that it answers gets a view of them. */
export interface CachedResponse {
  readonly outputs: readonly NamedTensor[]
  readonly parameters: Parameters
}

/** The counts of a cache since the process began, and what it holds. */
export interface CacheCounts {
  readonly hits: number
  readonly misses: number
  readonly lookupNs: number
  readonly insertionNs: number
  /** Absent for a cache that others fill too. */
  readonly held?: {
    readonly entries: number
    readonly evictions: number
    /** From 0 to 1. */
    readonly utilization: number
  }
}

/** Keeps responses by the key of their request. It never fails: what it cannot do is a miss. */
export interface ResponseCache {
  readonly counts: CacheCounts
  /**
   * Whether it outlives this process and is read by others. Keys then name models by their contents; in a cache of this process
   * they name the load.
   */
  readonly isShared: boolean
  /** @param key - of `cacheKey`. @returns a promise only where the answer comes from elsewhere; it never rejects. */
  lookup(key: string): CachedResponse | undefined | Promise<CachedResponse | undefined>
  /** Copies what it keeps: the bytes are viewed until it returns. */
  insert(key: string, response: CachedResponse): void
  close(): Promise<void>
}
