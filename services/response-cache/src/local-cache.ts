import type { Clock } from '@tutti/chassis'
import type { CacheCounts, CachedResponse, ResponseCache } from './response-cache.ts'

/** Bytes that an entry takes beside its bytes and texts, measured: the key, its place in the map, and the objects around. */
const ENTRY_BYTES = 512
/** The same for each tensor: its object, shape, and the buffer's own. */
const TENSOR_BYTES = 256
const PARAMETER_BYTES = 128
/** Bytes of a response that is kept: it is copied in one turn of the event loop. */
const MAX_ENTRY_BYTES = 64 * 2 ** 20

interface Entry extends CachedResponse {
  readonly bytes: number
}

/** A response cache in the memory of this process, bounded in bytes. It evicts the least recently used responses first. */
export class LocalCache implements ResponseCache {
  readonly isShared = false
  readonly #maxBytes: number
  readonly #clock: Pick<Clock, 'now'>
  /** Entries, in the order of their last use. */
  readonly #entries = new Map<string, Entry>()
  #bytes = 0
  readonly #counted = { hits: 0, misses: 0, evictions: 0, lookupNs: 0, insertionNs: 0 }

  /** @param o.maxBytes - the most bytes of all entries, overhead included. */
  constructor(o: { readonly maxBytes: number; readonly clock: Pick<Clock, 'now'> }) {
    this.#maxBytes = o.maxBytes
    this.#clock = o.clock
  }

  get counts(): Required<CacheCounts> {
    const { evictions, ...counted } = this.#counted
    const entries = this.#entries.size
    return { ...counted, held: { entries, evictions, utilization: this.#bytes / this.#maxBytes } }
  }

  /** Looks up the response to a request. @param key - of `cacheKey`. */
  lookup(key: string): CachedResponse | undefined {
    const startedAt = this.#clock.now()
    const entry = this.#entries.get(key)
    if (entry === undefined) this.#counted.misses += 1
    else {
      this.#counted.hits += 1
      this.#entries.delete(key)
      this.#entries.set(key, entry)
    }
    this.#counted.lookupNs += this.#sinceNs(startedAt)
    return entry
  }

  /** Keeps a copy. A response that is larger than the cache, or takes long to copy, is not kept. */
  insert(key: string, response: CachedResponse): void {
    const startedAt = this.#clock.now()
    const bytes = entryBytes(response)
    // Two equal requests may have missed together.
    if (bytes <= Math.min(this.#maxBytes, MAX_ENTRY_BYTES) && !this.#entries.has(key)) {
      this.#evict(this.#maxBytes - bytes)
      this.#entries.set(key, { ...copied(response), bytes })
      this.#bytes += bytes
    }
    this.#counted.insertionNs += this.#sinceNs(startedAt)
  }

  close(): Promise<void> {
    this.#entries.clear()
    this.#bytes = 0
    return Promise.resolve()
  }

  /** Drops entries until no more than so many bytes are left. */
  #evict(most: number): void {
    for (const [key, { bytes }] of this.#entries) {
      if (this.#bytes <= most) return
      this.#entries.delete(key)
      this.#bytes -= bytes
      this.#counted.evictions += 1
    }
  }

  #sinceNs(startedAt: number): number {
    return (this.#clock.now() - startedAt) * 1e6
  }
}

function entryBytes({ outputs, parameters }: CachedResponse): number {
  let bytes = ENTRY_BYTES
  for (const { name, shape, data } of outputs) {
    bytes += TENSOR_BYTES + 2 * name.length + 8 * shape.length + data.byteLength
  }
  for (const [name, { value }] of parameters) {
    bytes += PARAMETER_BYTES + 2 * (name.length + String(value).length)
  }
  return bytes
}

/** Copies a response into its own memory, because a part of a larger buffer would keep the whole buffer. */
function copied({ outputs, parameters }: CachedResponse): CachedResponse {
  return {
    outputs: outputs.map((output) => ({ ...output, data: new Uint8Array(output.data) })),
    parameters,
  }
}
