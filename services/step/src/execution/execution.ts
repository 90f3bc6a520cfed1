import type { BatchOptions, EngineRequest, ExecutionTimes, LoadedModel } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import { applyOutputReshape } from '@tutti/model-config'
import { toFailureReason } from '@tutti/server'
import {
  type ExecuteOptions,
  executedBefore,
  type NamedTensor,
  type ResponseSink,
  type StepRequest,
  type StepResponse,
  type StepTimes,
} from '@tutti/tensor'
import type { QueueEntry } from '../queue/request-queue.ts'
import type { ExecutionContext } from './execution-context.ts'
import { ReaderLag } from './reader-lag.ts'
import {
  cancelError,
  deadlineError,
  engineError,
  unansweredError,
  undeclaredError,
} from './request-errors.ts'
import type { Turn } from './response-order.ts'

/** Who schedules requests and executions. */
export interface ExecutionOwner {
  readonly context: ExecutionContext
  /** Answers the request with an error, whether it waits or runs. */
  abandon(request: ScheduledRequest, error: ServeError): void
  /** A request has had its final response, or its failure. */
  settled(): void
  /** The instance may take a further execution. @param times - of the execution, if it is over and did not fail. */
  released(instance: number, times: ExecutionTimes | undefined): void
  /** All requests of the execution are answered. */
  ended(execution: Execution): void
}

/** One run of a batch on one instance: tells the engine of callers that leave, and its requests of the end. */
export class Execution implements BatchOptions {
  readonly instance: number
  /** By the clock, in milliseconds. */
  readonly startedAt: number
  readonly requests: readonly ScheduledRequest[]
  readonly #owner: ExecutionOwner
  #abort: AbortController | undefined
  #onAbandon: ((request: number) => void) | undefined
  /** Places in the batch whose callers have left before their final response. */
  #left: number[] | undefined
  /** Why the last caller that left did so. */
  #leftError: ServeError | undefined
  /** Requests that are not answered. */
  #open: number
  #isReleased = false

  constructor(owner: ExecutionOwner, o: Pick<Execution, 'requests' | 'instance' | 'startedAt'>) {
    this.instance = o.instance
    this.startedAt = o.startedAt
    this.requests = o.requests
    this.#owner = owner
    this.#open = o.requests.length
    for (const request of o.requests) request.begin(this)
  }

  /** Resolves when every request is answered, whatever the engine does; never rejects. */
  async run(model: LoadedModel): Promise<void> {
    let times: ExecutionTimes | undefined
    let failure: ServeError | undefined
    try {
      times = await model.execute(this.requests, this)
      let batchSize = 0
      for (const { request } of this.requests) batchSize += Math.max(1, request.batchSize)
      this.#owner.context.statistics.recordExecution({ ...times, batchSize })
    } catch (error) {
      failure = engineError(error)
    }
    for (const request of this.requests) request.executed(times, failure)
    this.#owner.ended(this)
    this.release(times)
  }

  /** Made when an engine asks for it: most do not, and it costs more than the rest of a small request. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    return this.#abort.signal
  }

  onAbandon(listener: (request: number) => void): void {
    this.#onAbandon = listener
    for (const request of this.#left ?? []) listener(request)
  }

  /** Gives the instance back. An engine that is done with it before it has answered all calls this too. */
  release(times?: ExecutionTimes): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#owner.released(this.instance, times)
  }

  /** The caller of a request has left. */
  left(request: ScheduledRequest, error: ServeError, hasFinal: boolean): void {
    this.#leftError = error
    if (!hasFinal) {
      const place = this.requests.indexOf(request)
      this.#left ??= []
      this.#left.push(place)
      this.#onAbandon?.(place)
    }
    this.answered()
  }

  /** A request has had its last. If no caller waits any more, and not all have what they waited for, the engine may stop. */
  answered(): void {
    this.#open -= 1
    if (this.#open > 0 || this.#leftError === undefined) return
    this.#abort ??= new AbortController()
    this.#abort.abort(this.#leftError)
  }
}

const NO_TIMES: ExecutionTimes = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }

/**
 * A request between its acceptance and its one final response. To the engine that executes it it is the sink; it passes on
 * what fits the model's configuration, and records how the request went. It listens for cancel and deadline until it is answered.
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
  readonly #owner: ExecutionOwner
  readonly #context: ExecutionContext
  readonly #onAbort: () => void
  readonly #clearTimer: (() => void) | undefined
  #isAnswered = false
  /** Calls that the model makes for the request; they end with it. */
  #calls: Set<() => void> | undefined
  /** Set from the start of the execution on. */
  #execution: Execution | undefined
  #turn: Turn | undefined
  /** The final response, or the failure, kept until the execution's times are known. */
  #held: StepResponse | ServeError | undefined
  /** Gives back what it retains: the inputs of an abandoned request that the engine still reads, or the outputs of `#held`. */
  #giveBack: (() => void) | undefined
  /** The engine is done with the request. */
  #isExecuted = false
  /** The engine has sent its last. */
  #hasFinal = false
  #isAbandoned = false
  /** The statistics have it, as success or failure. */
  #isRecorded = false
  /** Present while the caller is not ready for what comes. */
  #lag: ReaderLag | undefined

  constructor(
    request: StepRequest,
    caller: ResponseSink,
    options: ExecuteOptions,
    owner: ExecutionOwner,
  ) {
    const { context } = owner
    this.request = request
    this.options = options
    this.acceptedAt = context.clock.now()
    this.#caller = caller
    this.#owner = owner
    this.#context = context
    this.#onAbort = () => owner.abandon(this, cancelError(options.signal.reason))
    options.signal.addEventListener('abort', this.#onAbort)
    this.deadlineAt = options.deadlineAt ?? Number.POSITIVE_INFINITY
    if (options.deadlineAt !== undefined) {
      const late = (): void => owner.abandon(this, deadlineError(request))
      const delayMs = Math.max(0, options.deadlineAt - this.acceptedAt)
      this.#clearTimer = context.clock.setTimer(delayMs, late)
    }
  }

  /** The model that executes it. */
  get model(): string {
    return this.#context.details.model
  }

  /** To its engine the request is its own sink. */
  get sink(): ResponseSink {
    return this
  }

  get isAnswered(): boolean {
    return this.#isAnswered
  }

  /** The execution that it is a part of begins. */
  begin(execution: Execution): void {
    this.#execution = execution
    this.#turn = this.#context.order?.claim()
  }

  send(response: StepResponse): void {
    if (this.#hasEnded()) return
    if (response.final) this.#end(response)
    else if (!this.#isAbandoned) this.#stream(response)
  }

  fail(error: ServeError): void {
    if (!this.#hasEnded()) this.#end(error)
  }

  /** A response waits for its request's turn first, then for the reader. */
  ready(): Promise<void> | undefined {
    if (this.#hasFinal || this.#isAbandoned) return undefined
    return this.#turn?.ready() ?? (this.#isAnswered ? undefined : this.#caller.ready?.())
  }

  /** The engine is done: a request without a final response gets an error, an abandoned one is counted. */
  executed(times: ExecutionTimes | undefined, failure: ServeError | undefined): void {
    this.#isExecuted = true
    if (this.#isAbandoned) this.#context.events.resultDropped()
    else if (!this.#isRecorded) {
      this.#answer(this.#held ?? failure ?? unansweredError(this.model), times)
    }
    this.#giveBack?.()
  }

  /** Answers the caller with an error of the scheduler, whether the request waits or runs. */
  refuse(error: ServeError): void {
    if (this.#isAnswered) return
    if (this.#execution !== undefined && !this.#isAbandoned) {
      // From now on what comes from the engine is dropped.
      this.#isAbandoned = true
      if (!this.#isExecuted) {
        this.#giveBack?.()
        this.#giveBack = this.request.retain?.()
      }
      this.#turn?.end()
      this.#execution.left(this, error, this.#hasFinal)
    }
    // The statistics have a request whose answer only waits for its turn.
    if (!this.#isRecorded) this.#recordFailure(toFailureReason(error))
    this.#respondError(error, undefined)
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

  #hasEnded(): boolean {
    const hasEnded = this.#hasFinal || this.#isExecuted
    if (hasEnded) this.#context.events.responseOutOfTurn(this.request.context.id)
    return hasEnded
  }

  /** The engine has sent its last. */
  #end(outcome: StepResponse | ServeError): void {
    this.#hasFinal = true
    if (this.#isAbandoned) return
    if (this.#context.isDecoupled) this.#answer(outcome, this.#elapsed())
    else {
      this.#held = outcome
      if (!(outcome instanceof ServeError)) this.#giveBack = outcome.retain?.()
    }
  }

  /** Passes a response on that is not the last, unless it breaks the configuration or the reader is too far behind. */
  #stream(response: StepResponse): void {
    if (this.ready() === undefined) this.#lag = undefined
    else {
      this.#lag ??= new ReaderLag()
      const behind = this.#lag.add(response)
      if (behind !== undefined) return this.#owner.abandon(this, behind)
    }
    const outputs = this.#toClient(response.outputs)
    if (outputs instanceof ServeError) this.#end(outputs)
    else this.#deliver(outputs === response.outputs ? response : { ...response, outputs })
  }

  /** Records how the request went, and answers it. */
  #answer(outcome: StepResponse | ServeError, times: ExecutionTimes = NO_TIMES): void {
    if (outcome instanceof ServeError) return this.#answerError(outcome, times)
    const outputs = this.#toClient(outcome.outputs)
    if (outputs instanceof ServeError) return this.#answerError(outputs, times)
    this.#isRecorded = true
    const { clock, statistics } = this.#context
    const { batchSize } = this.request
    const stepTimes = this.#stepTimes(times)
    const requestNs = toNs(clock.now() - this.acceptedAt)
    statistics.recordSuccess({ ...stepTimes, batchSize, requestNs })
    const { index, final, parameters, retain } = outcome
    const response = { index, final, outputs, parameters, times: stepTimes }
    this.#deliver(retain === undefined ? response : { ...response, retain })
  }

  #answerError(error: ServeError, times: ExecutionTimes): void {
    this.#recordFailure('BACKEND')
    const stepTimes = this.#stepTimes(times)
    if (this.#turn === undefined) this.#respondError(error, stepTimes)
    else this.#turn.deliver(() => this.#respondError(error, stepTimes), true)
  }

  #recordFailure(reason: ReturnType<typeof toFailureReason>): void {
    this.#isRecorded = true
    const { clock, statistics } = this.#context
    statistics.recordFailure({ requestNs: toNs(clock.now() - this.acceptedAt), reason })
  }

  /** The outputs as the client may have them, or how they break the model's configuration. */
  #toClient(outputs: readonly NamedTensor[]): readonly NamedTensor[] | ServeError {
    const { config, outputs: declared, hasReshape } = this.#context
    for (const { name } of outputs) {
      if (!declared.has(name)) return undeclaredError(name, config.name)
    }
    const wanted = this.request.requestedOutputs
    const kept = wanted.length === 0 ? outputs : outputs.filter((o) => wanted.includes(o.name))
    if (!hasReshape) return kept
    try {
      return kept.map((output) => applyOutputReshape(config, output, this.request.batchSize))
    } catch (error) {
      return ServeError.from(error)
    }
  }

  #deliver(response: StepResponse): void {
    if (this.#turn === undefined) return this.#respond(response)
    const giveBack = response.retain?.()
    const deliver = (): void => {
      this.#respond(response)
      giveBack?.()
    }
    this.#turn.deliver(deliver, response.final)
  }

  /** After the final response nothing has an effect. */
  #respond(response: StepResponse): void {
    if (this.#isAnswered) return
    if (response.final) this.#stopListening()
    this.#caller.send(response)
    if (response.final) this.#settle()
  }

  #respondError(error: ServeError, times: StepTimes | undefined): void {
    if (this.#isAnswered) return
    this.#stopListening()
    this.#caller.fail(error.withDetails(this.#context.details), executedBefore(error), times)
    this.#settle()
  }

  #stopListening(): void {
    this.#isAnswered = true
    this.options.signal.removeEventListener('abort', this.#onAbort)
    this.#clearTimer?.()
  }

  #settle(): void {
    if (this.#calls !== undefined) for (const end of this.#calls) end()
    if (!this.#isAbandoned && !this.#isExecuted) this.#execution?.answered()
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
    return { ...NO_TIMES, computeInferNs: toNs(this.#context.clock.now() - startedAt) }
  }
}

/** Milliseconds with a fraction to whole nanoseconds. */
function toNs(ms: number): number {
  return Math.round(ms * 1_000_000)
}
