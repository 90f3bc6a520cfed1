import type { ExecuteOptions, ExecutionTimes, LoadedModel } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import type { ResponseSink, StepResponse } from '@tutti/tensor'
import { type BearerResponse, outputBytes, type StepTimes } from '@tutti/transport'
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
  /** Of the responses since there was room last, which the engine did not wait for. */
  surplus: number
  surplusBytes: number
}

/** What an engine that does not ask for room may be ahead of a reader. ResponseSink tells engines of it. */
const MOST_SURPLUS = 1024
const MOST_SURPLUS_BYTES = 256 * 1024 * 1024

const NO_TIMES: ExecutionTimes = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }

/** One run of a batch on one instance: collects the engine's responses, answers each request once, records the figures. */
export class Execution implements ResponseSink {
  readonly #host: ExecutionHost
  readonly #parts: readonly Part[]
  readonly #startedAt: number
  #abort: AbortController | undefined
  #abandonedFor: ServeError | undefined
  #onAbandon: ((request: number) => void) | undefined
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
      surplus: 0,
      surplusBytes: 0,
    }))
    for (const accepted of batch) accepted.execution = this
  }

  /**
   * Resolves when the engine is done with the requests, with the times if it did not fail; never rejects.
   *
   * @param released - called if the engine is done with the instance before.
   */
  run(
    model: LoadedModel,
    instance: number,
    released: () => void,
  ): Promise<ExecutionTimes | undefined> {
    return this.#execute(model, new ExecutionOptions(this, instance, released)).then(
      (times) => {
        this.#recordExecution(times)
        for (const part of this.#parts) this.#close(part, times, undefined)
        return times
      },
      (error: unknown) => {
        const failure = engineError(error)
        for (const part of this.#parts) this.#close(part, NO_TIMES, failure)
        return undefined
      },
    )
  }

  /** An engine that throws at once has failed like one that rejects. */
  #execute(model: LoadedModel, o: ExecuteOptions): Promise<ExecutionTimes> {
    const requests = this.#parts.map((part) => part.accepted.request)
    try {
      return model.execute(requests, this, o)
    } catch (error) {
      return Promise.reject(engineError(error))
    }
  }

  /** Made when an engine asks for it: most do not, and it costs more than the rest of a small request. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#abandonedFor !== undefined) this.#abort.abort(this.#abandonedFor)
    }
    return this.#abort.signal
  }

  /** Tells from now on which caller has left. */
  onAbandon(listener: (request: number) => void): void {
    this.#onAbandon = listener
    this.#parts.forEach((part, request) => {
      if (part.isAbandoned) listener(request)
    })
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

  room(request: number): Promise<void> | undefined {
    const part = this.#parts[request]
    return part === undefined || part.hasFinal ? undefined : roomOf(part)
  }

  /**
   * The caller of one request is about to be answered: what comes for it is dropped. The last one to go tells the engine.
   * @returns false if the statistics have the request already, because its answer only waits for its turn.
   */
  abandon(accepted: AcceptedRequest, error: ServeError): boolean {
    const request = this.#parts.findIndex((candidate) => candidate.accepted === accepted)
    const part = this.#parts[request]
    if (part === undefined || part.isAbandoned) return false
    part.isAbandoned = true
    part.turn?.end()
    this.#live -= 1
    if (!part.hasFinal) this.#onAbandon?.(request)
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
    if (this.#isTooFarAhead(part, response)) return
    const fitted = this.#fit(part, response)
    if (fitted.error === undefined) this.#deliver(part, fitted)
    else this.#refuse(part, fitted.error, this.#elapsed())
  }

  /** Ends a request whose engine does not wait for its reader, when that is far behind. */
  #isTooFarAhead(part: Part, response: StepResponse): boolean {
    if (roomOf(part) === undefined) {
      part.surplus = 0
      part.surplusBytes = 0
      return false
    }
    part.surplus += 1
    part.surplusBytes += outputBytes(response)
    if (part.surplus <= MOST_SURPLUS && part.surplusBytes <= MOST_SURPLUS_BYTES) return false
    const text = `the reader is behind: ${part.surplus} responses of ${part.surplusBytes} bytes came without room, want at most ${MOST_SURPLUS} and ${MOST_SURPLUS_BYTES}`
    part.accepted.giveUp(new ServeError('OVERLOADED', text))
    return true
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
    const { index, final, outputs, parameters } = fitted
    this.#deliver(part, { index, final, outputs, parameters, times: stepTimes })
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

/** A response waits for its request's turn first, then for the reader. */
function roomOf({ isAbandoned, turn, accepted }: Part): Promise<void> | undefined {
  return isAbandoned ? undefined : (turn?.room() ?? accepted.room())
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
class ExecutionOptions implements ExecuteOptions {
  readonly instance: number
  readonly release: () => void
  readonly #execution: Execution

  constructor(execution: Execution, instance: number, release: () => void) {
    this.#execution = execution
    this.instance = instance
    this.release = release
  }

  get signal(): AbortSignal {
    return this.#execution.signal
  }

  onAbandon(listener: (request: number) => void): void {
    this.#execution.onAbandon(listener)
  }
}
