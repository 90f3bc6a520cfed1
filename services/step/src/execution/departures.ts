import type { CancelSignal, ServeError } from '@tutti/errors'

/** Tells the engine of a batch which callers have left it, and, as its signal, that no caller waits any longer. */
export class Departures implements CancelSignal {
  aborted = false
  #onAbort: (() => void)[] = []
  #listener: ((request: number) => void) | undefined
  /** Places in the batch whose callers have left before the engine sent its last. */
  readonly #left: number[] = []
  /** Requests that are not answered. */
  #open: number
  #reason: ServeError | undefined

  constructor(requests: number) {
    this.#open = requests
  }

  get reason(): ServeError | undefined {
    return this.aborted ? this.#reason : undefined
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (!this.aborted) this.#onAbort.push(listener)
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#onAbort = this.#onAbort.filter((other) => other !== listener)
  }

  listen(listener: (request: number) => void): void {
    this.#listener = listener
    for (const place of this.#left) listener(place)
  }

  /** Notes that a caller has left. @param place - in the batch. */
  left(place: number): void {
    this.#left.push(place)
    this.#listener?.(place)
  }

  /**
   * Notes that a request was answered before the engine was done. The engine may stop once no caller waits any longer, unless all
   * have what they waited for.
   *
   * @param reason - why the caller left, if it did.
   */
  answered(reason?: ServeError): void {
    this.#open -= 1
    this.#reason = reason ?? this.#reason
    if (this.#open > 0 || this.#reason === undefined) return
    this.aborted = true
    for (const listener of this.#onAbort.splice(0)) listener()
  }
}
