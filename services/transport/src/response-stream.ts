interface Waiting<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void
  readonly reject: (error: unknown) => void
}

const DONE = { done: true, value: undefined } as const

/**
 * Turns pushed responses into an async iteration. Ends by itself after the final response.
 * Written by one producer and read by one consumer; what arrives after the end, or after the consumer stopped, is dropped.
 */
export class ResponseStream<T extends { readonly final: boolean }>
  implements AsyncIterableIterator<T, undefined>
{
  readonly #ready: T[] = []
  #waiting: Waiting<T> | undefined
  #failure: { readonly error: unknown } | undefined
  /** No more will be pushed. */
  #ended = false

  get ended(): boolean {
    return this.#ended
  }

  send(response: T): void {
    if (this.#ended) return
    if (response.final) this.#ended = true
    const waiting = this.#waiting
    if (waiting === undefined) {
      this.#ready.push(response)
      return
    }
    this.#waiting = undefined
    waiting.resolve({ done: false, value: response })
  }

  /** Ends the iteration with an error, after what was pushed before. */
  fail(error: unknown): void {
    if (this.#ended) return
    this.#ended = true
    const waiting = this.#waiting
    if (waiting === undefined) {
      this.#failure = { error }
      return
    }
    this.#waiting = undefined
    waiting.reject(error)
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const response = this.#ready.shift()
    if (response !== undefined) return Promise.resolve({ done: false, value: response })
    if (this.#failure !== undefined) {
      const { error } = this.#failure
      this.#failure = undefined
      return Promise.reject(error)
    }
    if (this.#ended) return Promise.resolve(DONE)
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  return(): Promise<IteratorResult<T, undefined>> {
    this.#ended = true
    this.#ready.length = 0
    this.#waiting?.resolve(DONE)
    this.#waiting = undefined
    return Promise.resolve(DONE)
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
