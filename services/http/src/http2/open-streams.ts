import type { ServerStream } from './stream.ts'

const BUCKETS = 32

/** Open streams of a connection, by their ids. It is no Map: docs/decisions/no-sets-of-requests.md. */
export class OpenStreams implements Iterable<ServerStream> {
  readonly #buckets: readonly ServerStream[][] = Array.from({ length: BUCKETS }, () => [])
  #size = 0

  get size(): number {
    return this.#size
  }

  find(id: number): ServerStream | undefined {
    for (const stream of this.#bucketOf(id)) if (stream.id === id) return stream
    return undefined
  }

  /** Adds a stream. @param stream - its id is not here yet. */
  add(stream: ServerStream): void {
    this.#bucketOf(stream.id).push(stream)
    this.#size += 1
  }

  delete(stream: ServerStream): void {
    const bucket = this.#bucketOf(stream.id)
    const at = bucket.indexOf(stream)
    if (at < 0) return
    bucket.splice(at, 1)
    this.#size -= 1
  }

  /** Iterates over the streams that are open now, whatever is added or deleted meanwhile. */
  [Symbol.iterator](): Iterator<ServerStream> {
    return this.#buckets.flat().values()
  }

  /** Ids of a client's streams are odd. */
  #bucketOf(id: number): ServerStream[] {
    return this.#buckets[(id >>> 1) % BUCKETS] ?? []
  }
}
