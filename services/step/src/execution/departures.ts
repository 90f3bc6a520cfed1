import type { ServeError } from '@tutti/errors'

/** Tells the engine of a batch which callers have left it, and that no caller waits any more. */
export class Departures {
  readonly #abort = new AbortController()
  #listener: ((request: number) => void) | undefined
  /** Places in the batch whose callers have left before the engine sent its last. */
  readonly #left: number[] = []
  /** Requests that are not answered. */
  #open: number
  #reason: ServeError | undefined

  constructor(requests: number) {
    this.#open = requests
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  listen(listener: (request: number) => void): void {
    this.#listener = listener
    for (const place of this.#left) listener(place)
  }

  /** A caller has left. @param place - in the batch. */
  left(place: number): void {
    this.#left.push(place)
    this.#listener?.(place)
  }

  /**
   * A request was answered before the engine was done. The engine may stop once no caller waits any more, unless all have what
   * they waited for.
   *
   * @param reason - why the caller left, if it did.
   */
  answered(reason?: ServeError): void {
    this.#open -= 1
    this.#reason = reason ?? this.#reason
    if (this.#open === 0 && this.#reason !== undefined) this.#abort.abort(this.#reason)
  }
}
