import { raceSignal } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import { ReadyGate, type ResponseSink, type StepResponse } from '@tutti/tensor'

interface Queued {
  readonly response: StepResponse
  readonly bytes: number
  readonly giveBack: (() => void) | undefined
}

export interface ResponseQueueOptions {
  /** Callback that counts bytes of waiting responses; a negative number gives back. @throws ServeError OVERLOADED */
  readonly charge: (bytes: number) => void
  readonly signal: CancelSignal
}

/** The responses of one request, which `next` reads one by one. The model waits while a response is unread. */
export class ResponseQueue implements ResponseSink {
  readonly #options: ResponseQueueOptions
  readonly #waiting: Queued[] = []
  readonly #taken = new ReadyGate()
  readonly #arrived = new ReadyGate()
  #failure: ServeError | undefined
  #isOver = false

  constructor(o: ResponseQueueOptions) {
    this.#options = o
  }

  send(response: StepResponse): void {
    if (this.#isOver) return
    // The end of a sequence that had its last response before.
    const isEmpty = response.final && response.outputs.length === 0
    if (!isEmpty) this.#keep(response)
    this.#isOver ||= response.final
    this.#arrived.open()
  }

  fail(error: ServeError): void {
    if (this.#isOver) return
    this.#failure = error
    this.#isOver = true
    this.#arrived.open()
  }

  ready(): Promise<void> | undefined {
    return this.#isOver || this.#waiting.length === 0 ? undefined : this.#taken.wait()
  }

  /**
   * Reads the next response.
   *
   * @param read - converts the response, whose bytes are valid until the promise of `read` resolves.
   * @returns undefined after the last one.
   * @throws ServeError the model's failure, the signal's reason, or what `read` throws.
   */
  async next<T>(read: (response: StepResponse) => Promise<T>): Promise<T | undefined> {
    while (this.#waiting.length === 0) {
      if (this.#failure !== undefined) throw this.#failure
      if (this.#isOver) return undefined
      // An engine that cannot be interrupted must not hold the answer.
      await raceSignal(this.#arrived.wait(), this.#options.signal)
    }
    const [item] = this.#waiting
    if (item === undefined) return undefined
    try {
      return await read(item.response)
    } finally {
      if (this.#waiting.shift() !== undefined) this.#release(item)
      this.#taken.open()
    }
  }

  /** Drops all responses that come from now on. Those that wait can still be read. */
  end(): void {
    this.#isOver = true
    this.#taken.open()
  }

  /** Drops the responses that wait, and all that come from now on. */
  close(): void {
    this.end()
    for (const item of this.#waiting.splice(0)) this.#release(item)
  }

  #keep(response: StepResponse): void {
    const bytes = response.outputs.reduce((sum, { data }) => sum + data.byteLength, 0)
    try {
      this.#options.charge(bytes)
    } catch (error) {
      return this.fail(ServeError.from(error))
    }
    this.#waiting.push({ response, bytes, giveBack: response.retain?.() })
  }

  #release({ bytes, giveBack }: Queued): void {
    this.#options.charge(-bytes)
    giveBack?.()
  }
}
