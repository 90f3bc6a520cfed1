import type { EngineRequest, ExecutionTimes } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import {
  type ExecuteOptions,
  executedBefore,
  outputBytes,
  type ResponseSink,
  requestPrefix,
  type StepRequest,
  type StepResponse,
  type StepTimes,
} from '@tutti/tensor'
import type { QueueEntry } from '../queue/queue-entry.ts'
import type { ExecutionHost } from './execution-host.ts'
import type { OrderedTurn } from './response-order.ts'

/** Who schedules a request. */
export interface RequestOwner {
  readonly host: ExecutionHost
  /** Answers the request with an error, whether it waits or runs. */
  abandon(request: ScheduledRequest, error: ServeError): void
  /** The request has had its final response, or its failure. */
  settled(): void
}

/** The execution that a request is a part of. */
export interface RequestExecution {
  /** By the clock, in milliseconds. */
  readonly startedAt: number
  /** The caller of one of its requests has left. */
  left(request: ScheduledRequest, error: ServeError, hasFinal: boolean): void
}

/** What an engine that does not ask whether the sink is ready may be ahead of a reader. LoadedModel tells engines of it. */
const MOST_SURPLUS = 1024
const MOST_SURPLUS_BYTES = 256 * 1024 * 1024

const NO_TIMES: ExecutionTimes = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }

/**
 * A request between its acceptance and its one final response. To the engine that executes it it is the sink; it passes on
 * what fits the model's contract, and records how the request went. It listens for cancel and deadline until it is answered.
 */
export class ScheduledRequest implements EngineRequest, ResponseSink {
  readonly request: StepRequest
  /** What came with it; what its model calls belongs to the same request. */
  readonly options: ExecuteOptions
  readonly acceptedAt: number
  /** Infinity without a deadline. */
  readonly deadlineAt: number
  /** Set while the request waits. */
  entry: QueueEntry<ScheduledRequest> | undefined
  readonly #caller: ResponseSink
  readonly #onAbort: () => void
  readonly #clearTimer: (() => void) | undefined
  readonly #owner: RequestOwner
  #isAnswered = false
  /** Calls that the model makes for the request; they end with it. */
  #calls: Set<() => void> | undefined
  /** Set from the start of the execution on. */
  #execution: RequestExecution | undefined
  #turn: OrderedTurn | undefined
  /** The final response, or the failure, kept until the execution's times are known. */
  #held: StepResponse | ServeError | undefined
  /** The engine has sent its last. */
  #hasFinal = false
  #isAbandoned = false
  /** The statistics have it, as success or failure. */
  #isRecorded = false
  /** Of the responses since the caller was ready last, which the engine did not wait for. */
  #surplus = 0
  #surplusBytes = 0

  constructor(
    request: StepRequest,
    caller: ResponseSink,
    options: ExecuteOptions,
    owner: RequestOwner,
  ) {
    const { clock } = owner.host
    this.request = request
    this.options = options
    this.acceptedAt = clock.now()
    this.#caller = caller
    this.#owner = owner
    this.#onAbort = () => owner.abandon(this, cancelError(options.signal.reason))
    options.signal.addEventListener('abort', this.#onAbort, { once: true })
    this.deadlineAt = options.deadlineAt ?? Number.POSITIVE_INFINITY
    if (options.deadlineAt !== undefined) {
      const late = (): void => owner.abandon(this, deadlineError(request))
      this.#clearTimer = clock.setTimer(Math.max(0, options.deadlineAt - this.acceptedAt), late)
    }
  }

  /** The model that executes it. */
  get model(): string {
    return this.#owner.host.details.model
  }

  /** To its engine the request is its own sink. */
  get sink(): ResponseSink {
    return this
  }

  get isAnswered(): boolean {
    return this.#isAnswered
  }

  /** The execution that it is a part of begins. */
  begin(execution: RequestExecution): void {
    this.#execution = execution
    this.#turn = this.#owner.host.order?.claim()
  }

  send(response: StepResponse): void {
    if (this.#isOutOfTurn()) return
    this.#hasFinal = response.final
    if (this.#isAbandoned) return
    if (response.final && !this.#owner.host.isDecoupled) this.#held = response
    else if (response.final) this.#answer(response, this.#elapsed())
    else if (!this.#isTooFarAhead(response)) this.#pass(response)
  }

  fail(error: ServeError): void {
    if (this.#isOutOfTurn()) return
    this.#hasFinal = true
    if (this.#isAbandoned) return
    if (this.#owner.host.isDecoupled) this.#answerError(error, this.#elapsed())
    else this.#held = error
  }

  ready(): Promise<void> | undefined {
    return this.#hasFinal ? undefined : this.#callerReady()
  }

  /**
   * The caller is about to be answered otherwise: what comes from the engine is dropped.
   * @returns false if the statistics have the request already, because its answer only waits for its turn.
   */
  abandoned(error: ServeError): boolean {
    if (this.#execution === undefined) return true
    if (this.#isAbandoned) return false
    this.#isAbandoned = true
    this.#turn?.end()
    this.#execution.left(this, error, this.#hasFinal)
    return !this.#isRecorded
  }

  /** The engine is done: a request without a final response gets an error, an abandoned one is counted. */
  executed(times: ExecutionTimes | undefined, failure: ServeError | undefined): void {
    const { host } = this.#owner
    if (this.#isAbandoned) host.dropped()
    else if (this.#isRecorded) return
    else if (this.#held instanceof ServeError) this.#answerError(this.#held, times)
    else if (this.#held !== undefined) this.#answer(this.#held, times)
    else this.#answerError(failure ?? unanswered(host), times)
  }

  /** Answers the caller with an error that is none of the engine's. */
  refuse(error: ServeError): void {
    this.#fail(error, undefined)
  }

  /** Calls `end` when the request is answered, at once if it is. @returns takes it back. */
  whenAnswered(end: () => void): () => void {
    if (this.#isAnswered) {
      end()
      return () => {}
    }
    this.#calls ??= new Set()
    this.#calls.add(end)
    return () => void this.#calls?.delete(end)
  }

  #isOutOfTurn(): boolean {
    if (this.#hasFinal) this.#owner.host.events.responseOutOfTurn(this.request.context.id)
    return this.#hasFinal
  }

  /** A response waits for its request's turn first, then for the reader. */
  #callerReady(): Promise<void> | undefined {
    if (this.#isAbandoned) return undefined
    return this.#turn?.ready() ?? (this.#isAnswered ? undefined : this.#caller.ready?.())
  }

  /** Ends a request whose engine does not wait for its reader, when that is far behind. */
  #isTooFarAhead(response: StepResponse): boolean {
    if (this.#callerReady() === undefined) {
      this.#surplus = 0
      this.#surplusBytes = 0
      return false
    }
    this.#surplus += 1
    this.#surplusBytes += outputBytes(response)
    if (this.#surplus <= MOST_SURPLUS && this.#surplusBytes <= MOST_SURPLUS_BYTES) return false
    const text = `the reader is behind: ${this.#surplus} responses of ${this.#surplusBytes} bytes came before it was ready, want at most ${MOST_SURPLUS} and ${MOST_SURPLUS_BYTES}`
    this.#owner.abandon(this, new ServeError('OVERLOADED', text))
    return true
  }

  /** Passes a response on that is not the last. One that breaks the model's own contract ends the request. */
  #pass(response: StepResponse): void {
    const fitted = this.#fit(response)
    if (!(fitted instanceof ServeError)) return this.#inTurn(false, () => this.#respond(fitted))
    this.#hasFinal = true
    this.#answerError(fitted, this.#elapsed())
  }

  #answer(response: StepResponse, times: ExecutionTimes = NO_TIMES): void {
    const fitted = this.#fit(response)
    if (fitted instanceof ServeError) return this.#answerError(fitted, times)
    this.#isRecorded = true
    const stepTimes = this.#stepTimes(times)
    const { batchSize } = this.request
    const requestNs = this.#sinceAcceptedNs()
    this.#owner.host.statistics.recordSuccess({ ...stepTimes, batchSize, requestNs })
    const { index, final, outputs, parameters } = fitted
    const last = { index, final, outputs, parameters, times: stepTimes }
    this.#inTurn(final, () => this.#respond(last))
  }

  #answerError(error: ServeError, times: ExecutionTimes = NO_TIMES): void {
    this.#isRecorded = true
    const requestNs = this.#sinceAcceptedNs()
    this.#owner.host.statistics.recordFailure({ requestNs, reason: 'BACKEND' })
    const stepTimes = this.#stepTimes(times)
    this.#inTurn(true, () => this.#fail(error, stepTimes))
  }

  /** The response as the client may have it, or how it breaks the model's own contract. */
  #fit(response: StepResponse): StepResponse | ServeError {
    try {
      const outputs = this.#owner.host.outputs(response.outputs, this.request)
      return outputs === response.outputs ? response : { ...response, outputs }
    } catch (error) {
      return ServeError.from(error)
    }
  }

  #inTurn(isLast: boolean, deliver: () => void): void {
    if (this.#turn === undefined) return deliver()
    this.#turn.deliver(deliver)
    if (isLast) this.#turn.end()
  }

  /** After the final response nothing has an effect. */
  #respond(response: StepResponse): void {
    if (this.#isAnswered) return
    if (response.final) this.#answered()
    this.#caller.send(response)
    if (response.final) this.#settle()
  }

  #fail(error: ServeError, times: StepTimes | undefined): void {
    if (this.#isAnswered) return
    this.#answered()
    this.#caller.fail(error.withDetails(this.#owner.host.details), executedBefore(error), times)
    this.#settle()
  }

  #answered(): void {
    this.#isAnswered = true
    this.options.signal.removeEventListener('abort', this.#onAbort)
    this.#clearTimer?.()
  }

  #settle(): void {
    for (const end of this.#calls ?? []) end()
    this.#owner.settled()
  }

  #stepTimes(times: ExecutionTimes): StepTimes {
    const startedAt = this.#execution?.startedAt ?? this.acceptedAt
    return {
      queueNs: toNs(startedAt - this.acceptedAt) + (times.waitNs ?? 0),
      computeInputNs: times.computeInputNs,
      computeInferNs: times.computeInferNs,
      computeOutputNs: times.computeOutputNs,
      transferNs: 0,
    }
  }

  #elapsed(): ExecutionTimes {
    const startedAt = this.#execution?.startedAt ?? this.acceptedAt
    const computeInferNs = toNs(this.#owner.host.clock.now() - startedAt)
    return { computeInputNs: 0, computeInferNs, computeOutputNs: 0 }
  }

  #sinceAcceptedNs(): number {
    return toNs(this.#owner.host.clock.now() - this.acceptedAt)
  }
}

/** Milliseconds with a fraction to whole nanoseconds. */
export function toNs(ms: number): number {
  return Math.round(ms * 1_000_000)
}

/** What the caller is told when its signal aborted: Triton gives CANCELLED without a text. */
export function cancelError(reason: unknown): ServeError {
  if (reason instanceof ServeError && reason.code !== 'CANCELLED') return reason
  return new ServeError('CANCELLED', '', { cause: reason })
}

export function deadlineError(request: StepRequest): ServeError {
  const prefix = requestPrefix(request.context.id)
  return new ServeError('DEADLINE_EXCEEDED', `${prefix}the time of the request is over`)
}

function unanswered({ details }: ExecutionHost): ServeError {
  const text = `model '${details.model}' ended its execution without a final response`
  return new ServeError('RESPONSE_INVALID', text)
}
