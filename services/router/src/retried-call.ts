import { sleep } from '@tutti/chassis'
import { retryDelayMs } from '@tutti/ensemble'
import { ServeError } from '@tutti/errors'
import type { Executed, ResponseSink, StepResponse, StepTimes } from '@tutti/tensor'
import { type CallDependencies, callModel, type ModelCall } from './model-call.ts'
import type { RequestScope } from './request-scope.ts'

interface Failure {
  readonly error: ServeError
  readonly executed: Executed
  readonly times: StepTimes | undefined
}

/**
 * Calls an ordinary model, again where it cannot have run, by the rules that hold for the steps of an ensemble. `sink` hears of
 * responses, or of the last failure. Never throws.
 */
export function callWithRetries(
  o: CallDependencies,
  call: ModelCall,
  scope: RequestScope,
  sink: ResponseSink,
): void {
  new RetriedCall(o, call, scope, sink).attempt()
}

/** Hears of each attempt, and makes the next one. Without a promise as long as nothing fails. */
class RetriedCall implements ResponseSink {
  readonly #o: CallDependencies
  readonly #call: ModelCall
  readonly #scope: RequestScope
  readonly #sink: ResponseSink
  #tries = 0
  #hasResponded = false

  constructor(o: CallDependencies, call: ModelCall, scope: RequestScope, sink: ResponseSink) {
    this.#o = o
    this.#call = call
    this.#scope = scope
    this.#sink = sink
  }

  attempt(): void {
    this.#tries += 1
    const scope = this.#scope
    const call = this.#tries === 1 ? this.#call : { ...this.#call, attempt: this.#tries }
    callModel(this.#o, call, { scope, signal: scope.signal }, this)
  }

  send(response: StepResponse): void {
    this.#hasResponded = true
    this.#sink.send(response)
  }

  ready(): Promise<void> | undefined {
    return this.#sink.ready?.()
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    const failure = { error, executed, times }
    const delayMs = retryDelayMs({
      ...failure,
      hasResponded: this.#hasResponded,
      tries: this.#tries,
    })
    if (delayMs === undefined) this.#tell(failure)
    else if (delayMs > 0) void this.#attemptIn(delayMs, failure)
    else this.attempt()
  }

  async #attemptIn(delayMs: number, failure: Failure): Promise<void> {
    try {
      await sleep(delayMs, { clock: this.#o.clock, signal: this.#scope.signal })
    } catch (error) {
      this.#tell({ ...failure, error: ServeError.from(error) })
      return
    }
    this.attempt()
  }

  #tell({ error, executed, times }: Failure): void {
    const attempt = String(this.#tries)
    const located = this.#tries === 1 ? error : error.withDetails({ attempt })
    this.#sink.fail(located, executed, times)
  }
}
