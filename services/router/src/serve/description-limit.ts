import { ServeError } from '@tutti/errors'

/**
 * Bytes of JSON of all descriptions together; as objects they take several times as much. A thousand replicas of a step with
 * fifty models are within it.
 */
const MAX_BYTES = 128 * 1024 * 1024

/** Bounds the descriptions of all steps together: a client of the broker can invent steps, and each may send a megabyte. */
export class DescriptionLimit {
  readonly #maxBytes: number
  readonly #bytes = new Map<string, number>()
  #total = 0

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  /**
   * Counts a replica's description in place of its former one.
   *
   * @throws ServeError OVERLOADED if the bound is exceeded; then the former description stays counted.
   */
  take(replica: string, description: unknown): void {
    const bytes = Buffer.byteLength(JSON.stringify(description ?? null))
    const others = this.#total - (this.#bytes.get(replica) ?? 0)
    if (others + bytes > this.#maxBytes) {
      const text = `description of ${bytes} bytes beside ${others} of other steps, want at most ${this.#maxBytes} in all`
      throw new ServeError('OVERLOADED', text, { details: { replica } })
    }
    this.#bytes.set(replica, bytes)
    this.#total = others + bytes
  }

  /** Takes the description of a replica that is gone out of the count. */
  remove(replica: string): void {
    this.#total -= this.#bytes.get(replica) ?? 0
    this.#bytes.delete(replica)
  }
}
