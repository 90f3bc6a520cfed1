import type { ExecutionTimes, LoadedModel } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import type { ResponseSink, StepResponse } from '@tutti/tensor'
import type { BearerResponse, StepTimes } from '@tutti/transport'
import type { AcceptedRequest } from './accepted-request.ts'
import type { ExecutionHost } from './execution-host.ts'
import type { OrderedTurn } from './response-order.ts'

/** One request's part of an execution. */
interface Part {
  readonly accepted: AcceptedRequest
  readonly turn: OrderedTurn | undefined
  /** The final response, kept until the execution's times are known. */
  held: StepResponse | undefined
  hasFinal: boolean
  isAbandoned: boolean
  /** The statistics have it, as success or failure. */
  isRecorded: boolean
  sent: number
}

const NO_TIMES: ExecutionTimes = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }

/** One run of a batch on one instance: collects the engine's responses, answers each request once, records the figures. */
export class Execution implements ResponseSink {
  readonly #host: ExecutionHost
  readonly #parts: readonly Part[]
  readonly #startedAt: number
  #abort: AbortController | undefined
  #abandonedFor: ServeError | undefined
  #live: number

  constructor(host: ExecutionHost, batch: readonly AcceptedRequest[], startedAt: number) {
    this.#host = host
    this.#startedAt = startedAt
    this.#live = batch.length
    this.#parts = batch.map((accepted) => ({
      accepted,
      turn: host.order?.claim(),
      held: undefined,
      hasFinal: false,
      isAbandoned: false,
      isRecorded: false,
      sent: 0,
    }))
    for (const accepted of batch) accepted.execution = this
  }

  /** Resolves when the engine is done with the instance, with the times if it did not fail; never rejects. */
  async run(model: LoadedModel, instance: number): Promise<ExecutionTimes | undefined> {
    const requests = this.#parts.map((part) => part.accepted.request)
    let times: ExecutionTimes | undefined
    let failure: ServeError | undefined
    try {
      times = await model.execute(requests, this, new ExecuteOptions(this, instance))
      this.#recordExecution(times)
    } catch (error) {
      failure = engineError(error)
    }
    for (const part of this.#parts) this.#close(part, times ?? NO_TIMES, failure)
    return times
  }

  /** Made when an engine asks for it: most do not, and it costs more than the rest of a small request. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#abandonedFor !== undefined) this.#abort.abort(this.#abandonedFor)
    }
    return this.#abort.signal
  }

  send(request: number, response: StepResponse): void {
    const part = this.#parts[request]
    if (part === undefined) {
      this.#host.events.responseOutOfTurn(request, 'no such request')
    } else if (part.hasFinal) {
      this.#host.events.responseOutOfTurn(request, 'after the final response')
    } else {
      this.#take(part, response)
    }
  }

  /**
   * The caller of one request is about to be answered: what comes for it is dropped. The last one to go tells the engine.
   * @returns false if the statistics have the request already, because its answer only waits for its turn.
   */
  abandon(accepted: AcceptedRequest, error: ServeError): boolean {
    const part = this.#parts.find((candidate) => candidate.accepted === accepted)
    if (part === undefined || part.isAbandoned) return false
    part.isAbandoned = true
    part.turn?.end()
    this.#live -= 1
    if (this.#live === 0) {
      this.#abandonedFor = error
      this.#abort?.abort(error)
    }
    return !part.isRecorded
  }

  /** How many responses a request has had: the index of the next one. */
  sentTo(accepted: AcceptedRequest): number {
    return this.#parts.find((part) => part.accepted === accepted)?.sent ?? 0
  }

  #take(part: Part, response: StepResponse): void {
    part.hasFinal = response.final
    if (part.isAbandoned) return
    if (response.final && !this.#host.isDecoupled) {
      part.held = response
      return
    }
    if (response.final) {
      this.#answer(part, response, this.#elapsed())
      return
    }
    const fitted = this.#fit(part, response)
    if (fitted.error === undefined) this.#deliver(part, fitted)
    else this.#refuse(part, fitted.error, this.#elapsed())
  }

  /** The engine is done: a request without a final response gets an error, an abandoned one is counted. */
  #close(part: Part, times: ExecutionTimes, failure: ServeError | undefined): void {
    if (part.isAbandoned) this.#host.dropped()
    else if (part.isRecorded) return
    else if (part.held !== undefined) this.#answer(part, part.held, times)
    else this.#fail(part, failure ?? this.#unanswered(), times)
  }

  #answer(part: Part, response: StepResponse, times: ExecutionTimes): void {
    if (response.error !== undefined) {
      this.#fail(part, response.error, times)
      return
    }
    const fitted = this.#fit(part, response)
    if (fitted.error !== undefined) {
      this.#refuse(part, fitted.error, times)
      return
    }
    const { accepted } = part
    part.isRecorded = true
    const { batchSize } = accepted.request
    const stepTimes = this.#stepTimes(accepted, times)
    const requestNs = this.#sinceAccepted(accepted)
    this.#host.statistics.recordSuccess({ ...stepTimes, batchSize, requestNs })
    this.#deliver(part, { ...fitted, times: stepTimes })
  }

  /** A response that breaks the model's own contract ends the request. */
  #refuse(part: Part, error: ServeError, times: ExecutionTimes): void {
    part.hasFinal = true
    this.#fail(part, error, times)
  }

  #fail(part: Part, error: ServeError, times: ExecutionTimes): void {
    const { accepted } = part
    part.isRecorded = true
    const requestNs = this.#sinceAccepted(accepted)
    this.#host.statistics.recordFailure({ requestNs, reason: 'BACKEND' })
    this.#deliver(part, {
      index: part.sent,
      final: true,
      outputs: [],
      parameters: new Map(),
      error: error.withDetails(this.#host.details),
      times: this.#stepTimes(accepted, times),
    })
  }

  /** The response as the client may have it, or with an error if it breaks the model's own contract. */
  #fit(part: Part, response: StepResponse): StepResponse {
    try {
      const outputs = this.#host.outputs(response.outputs, part.accepted.request)
      return outputs === response.outputs ? response : { ...response, outputs }
    } catch (error) {
      return { ...response, outputs: [], error: ServeError.from(error) }
    }
  }

  #deliver(part: Part, response: BearerResponse): void {
    const { accepted, turn } = part
    part.sent += 1
    if (turn === undefined) {
      accepted.respond(response)
      return
    }
    turn.deliver(() => accepted.respond(response))
    if (response.final) turn.end()
  }

  #recordExecution(times: ExecutionTimes): void {
    let batchSize = 0
    for (const part of this.#parts) batchSize += Math.max(1, part.accepted.request.batchSize)
    this.#host.statistics.recordExecution({ ...times, batchSize })
  }

  #elapsed(): ExecutionTimes {
    const computeInferNs = toNs(this.#host.clock.now() - this.#startedAt)
    return { computeInputNs: 0, computeInferNs, computeOutputNs: 0 }
  }

  #stepTimes(accepted: AcceptedRequest, times: ExecutionTimes): StepTimes {
    return {
      queueNs: this.#queueNs(accepted) + (times.waitNs ?? 0),
      computeInputNs: times.computeInputNs,
      computeInferNs: times.computeInferNs,
      computeOutputNs: times.computeOutputNs,
      transferNs: 0,
    }
  }

  #queueNs(accepted: AcceptedRequest): number {
    return toNs(this.#startedAt - accepted.acceptedAt)
  }

  #sinceAccepted(accepted: AcceptedRequest): number {
    return toNs(this.#host.clock.now() - accepted.acceptedAt)
  }

  #unanswered(): ServeError {
    return new ServeError(
      'RESPONSE_INVALID',
      `model '${this.#host.details.model}' ended its execution without a final response`,
    )
  }
}

/** Milliseconds with a fraction to whole nanoseconds. */
export function toNs(ms: number): number {
  return Math.round(ms * 1_000_000)
}

function engineError(error: unknown): ServeError {
  if (error instanceof ServeError) return error
  const { message } = ServeError.from(error)
  return new ServeError('ENGINE_FAILED', message, { cause: error })
}

/** The options of `execute`, whose signal is only made when it is read. */
class ExecuteOptions {
  readonly instance: number
  readonly #execution: Execution

  constructor(execution: Execution, instance: number) {
    this.#execution = execution
    this.instance = instance
  }

  get signal(): AbortSignal {
    return this.#execution.signal
  }
}
