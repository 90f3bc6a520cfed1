import type { NamedTensor, Parameters } from '@tutti/tensor'

/** What is kept of a request's one response. Nobody writes to its bytes: all that it answers view them. */
export interface CachedResponse {
  readonly outputs: readonly NamedTensor[]
  readonly parameters: Parameters
}

/** What a cache counted since the process began, and what it holds. */
export interface CacheCounts {
  readonly hits: number
  readonly misses: number
  readonly evictions: number
  readonly lookupNs: number
  readonly insertionNs: number
  readonly entries: number
  /** From 0 to 1. */
  readonly utilization: number
}

/** Keeps responses by the key of their request. It never fails: what it cannot do is a miss. */
export interface ResponseCache {
  /** Absent for a cache that belongs to others too. */
  readonly counts?: CacheCounts
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
