import type { ServeError } from '@tutti/errors'
import type { ResponseSink, StepResponse, StepTimes } from '../execution.ts'

/** A response as a test sees it: a failure is the last one, with its error. */
export interface RecordedResponse extends StepResponse {
  readonly error?: ServeError
}

/** A sink that keeps what it gets, and is always ready. */
export class RecordedResponses implements ResponseSink {
  readonly responses: RecordedResponse[] = []
  readonly #ended = Promise.withResolvers<readonly RecordedResponse[]>()

  /** Resolves with all responses once the last one is there. */
  get all(): Promise<readonly RecordedResponse[]> {
    return this.#ended.promise
  }

  send(response: StepResponse): void {
    this.#take(response)
  }

  fail(error: ServeError, _executed?: 'no' | 'maybe', times?: StepTimes): void {
    const index = this.responses.length
    const last = { index, final: true, outputs: [], parameters: new Map(), error }
    this.#take(times === undefined ? last : { ...last, times })
  }

  #take(response: RecordedResponse): void {
    this.responses.push(response)
    if (response.final) this.#ended.resolve(this.responses)
  }
}
