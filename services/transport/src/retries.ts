import { type Clock, sleep } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Executed, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'

/** An attempt that failed. */
export interface FailedAttempt {
  readonly error: ServeError
  readonly executed: Executed
  /** A response of it has been passed on. */
  readonly hasResponded: boolean
  /** Counts from 1. */
  readonly tries: number
}

export interface RetryOptions {
  /** Begins an attempt. It does not throw. */
  attempt(tries: number, sink: ResponseSink): void
  /** @returns after how many milliseconds to try again; undefined for not at all. */
  delayMs(failed: FailedAttempt): number | undefined
  readonly clock: Clock
  readonly signal: CancelSignal
}

/** Executes a request, again where that is allowed. `sink` gets the responses, or the last failure. Never throws. */
export function executeWithRetries(o: RetryOptions, sink: ResponseSink): void {
  new Retries(o, sink).attempt()
}

/** Hears of each attempt, and makes the next one. Without a promise as long as nothing fails. */
class Retries implements ResponseSink {
  readonly #o: RetryOptions
  readonly #sink: ResponseSink
  #tries = 0
  #hasResponded = false

  constructor(o: RetryOptions, sink: ResponseSink) {
    this.#o = o
    this.#sink = sink
  }

  attempt(): void {
    this.#tries += 1
    this.#o.attempt(this.#tries, this)
  }

  send(response: StepResponse): void {
    this.#hasResponded = true
    this.#sink.send(response)
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    const tries = this.#tries
    const delayMs = this.#o.delayMs({ error, executed, hasResponded: this.#hasResponded, tries })
    if (delayMs === undefined) this.#tell(error, executed, times)
    else if (delayMs > 0) void this.#attemptIn(delayMs, executed, times)
    else this.attempt()
  }

  async #attemptIn(delayMs: number, executed: Executed, times?: StepTimes): Promise<void> {
    try {
      await sleep(delayMs, { clock: this.#o.clock, signal: this.#o.signal })
    } catch (error) {
      this.#tell(ServeError.from(error), executed, times)
      return
    }
    this.attempt()
  }

  #tell(error: ServeError, executed: Executed, times?: StepTimes): void {
    const attempt = String(this.#tries)
    const located = this.#tries === 1 ? error : error.withDetails({ attempt })
    this.#sink.fail(located, executed, times)
  }
}
