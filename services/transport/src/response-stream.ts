interface Waiting<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void
  readonly reject: (error: unknown) => void
}

const DONE = { done: true, value: undefined } as const

/** Takes what a stream brings: responses, the last of them final, or one error. */
export interface ResponseReceiver<T> {
  received(response: T): void
  failed(error: unknown): void
}

/**
 * Turns pushed responses into an async iteration. Ends by itself after the final response.
 * Written by one producer and read by one consumer; what arrives after the end, or after the consumer stopped, is dropped.
 */
export class ResponseStream<T extends { readonly final: boolean }>
  implements AsyncIterableIterator<T, undefined>
{
  readonly #ready: T[] = []
  #waiting: Waiting<T> | undefined
  #receiver: ResponseReceiver<T> | undefined
  #failure: { readonly error: unknown } | undefined
  /** No more will be pushed. */
  #ended = false

  get ended(): boolean {
    return this.#ended
  }

  send(response: T): void {
    if (this.#ended) return
    if (response.final) this.#ended = true
    if (this.#receiver !== undefined) {
      this.#receiver.received(response)
      return
    }
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
    if (this.#receiver !== undefined) {
      this.#receiver.failed(error)
      return
    }
    const waiting = this.#waiting
    if (waiting === undefined) {
      this.#failure = { error }
      return
    }
    this.#waiting = undefined
    waiting.reject(error)
  }

  /**
   * Hands everything to `receiver`, what is there at once and the rest as it comes, instead of the iteration: for who needs
   * no backpressure, several promises cheaper for each response.
   */
  deliver(receiver: ResponseReceiver<T>): void {
    this.#receiver = receiver
    for (const response of this.#ready.splice(0)) receiver.received(response)
    if (this.#failure !== undefined) receiver.failed(this.#failure.error)
    this.#failure = undefined
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

/** Hands the responses of any source to `receiver`. */
export function deliverResponses<T extends { readonly final: boolean }>(
  responses: AsyncIterable<T>,
  receiver: ResponseReceiver<T>,
): void {
  if (responses instanceof ResponseStream) responses.deliver(receiver)
  else void deliverEach(responses, receiver)
}

async function deliverEach<T>(
  responses: AsyncIterable<T>,
  receiver: ResponseReceiver<T>,
): Promise<void> {
  try {
    for await (const response of responses) receiver.received(response)
  } catch (error) {
    receiver.failed(error)
  }
}
