import type { CachedResponse, ResponseCache } from '../response-cache.ts'

/** A cache in memory that several processes of a test share, and that answers later. */
export class SharedCache implements ResponseCache {
  readonly isShared = true
  readonly counts = { hits: 0, misses: 0, lookupNs: 0, insertionNs: 0 }
  /** The promise that lookups wait for. */
  held: Promise<void> = Promise.resolve()
  readonly #kept = new Map<string, CachedResponse>()

  async lookup(key: string): Promise<CachedResponse | undefined> {
    await this.held
    return this.#kept.get(key)
  }

  insert(key: string, response: CachedResponse): void {
    const outputs = response.outputs.map((one) => ({ ...one, data: one.data.slice() }))
    this.#kept.set(key, { ...response, outputs })
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
