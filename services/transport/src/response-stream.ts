import { ServeError } from '@tutti/errors'
import { outputBytes, RESPONSE_WINDOW, ReadyGate } from '@tutti/tensor'

interface Waiting<T> {
  readonly resolve: (result: IteratorResult<T, undefined>) => void
  readonly reject: (error: unknown) => void
}

const DONE = { done: true, value: undefined } as const

/** Above what any producer that heeds `room`, or is held to a bound itself, leaves here. */
const MOST_READY = 2048

/** What a stream needs to know of its responses. */
export interface StreamedResponse {
  readonly final: boolean
  readonly outputs: readonly { readonly data: Uint8Array }[]
}

/** Takes what a stream brings: responses, the last of them final, or one error. */
export interface ResponseReceiver<T> {
  received(response: T): void
  failed(error: unknown): void
  /** As ResponseSink's: undefined if a further response may come now. One that is absent takes everything. */
  room?(): Promise<void> | undefined
}

/**
 * Turns pushed responses into an async iteration. Ends by itself after the final response.
 * Written by one producer and read by one consumer; what arrives after the end, or after the consumer stopped, is dropped.
 * A producer of many responses asks for `room` between them; one that does not, and is 2048 ahead, ends the stream with
 * OVERLOADED.
 */
export class ResponseStream<T extends StreamedResponse>
  implements AsyncIterableIterator<T, undefined>
{
  readonly #ready: T[] = []
  #readyBytes = 0
  readonly #gate = new ReadyGate()
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
    if (response.final) this.#end()
    if (this.#receiver !== undefined) {
      this.#receiver.received(response)
      return
    }
    const waiting = this.#waiting
    if (waiting === undefined) {
      this.#keep(response)
      return
    }
    this.#waiting = undefined
    waiting.resolve({ done: false, value: response })
  }

  /** As ResponseSink's: undefined if a further response may come now, or would be dropped anyway. */
  room(): Promise<void> | undefined {
    if (this.#receiver !== undefined) return this.#receiver.room?.()
    return this.#ended || this.#hasRoom() ? undefined : this.#gate.wait()
  }

  /** Ends the iteration with an error, after what was pushed before. */
  fail(error: unknown): void {
    if (this.#ended) return
    this.#end()
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
   * Hands everything to `receiver`, what is there at once and the rest as it comes, instead of the iteration: several promises
   * cheaper for each response. The producer then hears of the receiver whether there is room.
   */
  deliver(receiver: ResponseReceiver<T>): void {
    this.#receiver = receiver
    for (const response of this.#ready.splice(0)) receiver.received(response)
    this.#readyBytes = 0
    this.#gate.open()
    if (this.#failure !== undefined) receiver.failed(this.#failure.error)
    this.#failure = undefined
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const response = this.#ready.shift()
    if (response !== undefined) {
      this.#readyBytes -= outputBytes(response)
      if (this.#hasRoom()) this.#gate.open()
      return Promise.resolve({ done: false, value: response })
    }
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
    this.#end()
    this.#ready.length = 0
    this.#readyBytes = 0
    this.#waiting?.resolve(DONE)
    this.#waiting = undefined
    return Promise.resolve(DONE)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #keep(response: T): void {
    if (this.#ready.length >= MOST_READY) {
      this.fail(new ServeError('OVERLOADED', `${MOST_READY} responses wait for their reader`))
      return
    }
    this.#ready.push(response)
    this.#readyBytes += outputBytes(response)
  }

  #hasRoom(): boolean {
    const { responses, bytes } = RESPONSE_WINDOW
    return this.#ready.length < responses && this.#readyBytes < bytes
  }

  #end(): void {
    this.#ended = true
    this.#gate.open()
  }
}

/** Hands the responses of any source to `receiver`, the next one when it has room for it. */
export function deliverResponses<T extends StreamedResponse>(
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
    for await (const response of responses) {
      receiver.received(response)
      const room = receiver.room?.()
      if (room !== undefined) await room
    }
  } catch (error) {
    receiver.failed(error)
  }
}
