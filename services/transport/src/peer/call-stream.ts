import { ResponseStream } from '../response-stream.ts'
import type { BearerResponse } from '../tensor-bearer.ts'

/**
 * The responses of one call for their reader. Tells the producer when the reader has taken a response, and when it wants no
 * more, so that what waits here stays bounded.
 */
export class CallStream implements AsyncIterableIterator<BearerResponse, undefined> {
  readonly #stream = new ResponseStream<BearerResponse>()
  /** Of the responses that the reader has not taken, in order. */
  readonly #onTaken: (() => void)[] = []
  readonly #onLeft: () => void
  #hasLeft = false

  constructor(onLeft: () => void) {
    this.#onLeft = onLeft
  }

  send(response: BearerResponse, onTaken: () => void): void {
    if (this.#hasLeft) {
      onTaken()
      return
    }
    this.#onTaken.push(onTaken)
    this.#stream.send(response)
  }

  /** Ends the iteration with an error, after what was sent before. */
  fail(error: unknown): void {
    this.#stream.fail(error)
  }

  async next(): Promise<IteratorResult<BearerResponse, undefined>> {
    const result = await this.#stream.next()
    if (result.done !== true) this.#onTaken.shift()?.()
    return result
  }

  return(): Promise<IteratorResult<BearerResponse, undefined>> {
    if (!this.#hasLeft) {
      this.#hasLeft = true
      this.#onLeft()
      for (const onTaken of this.#onTaken.splice(0)) onTaken()
    }
    return this.#stream.return()
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
