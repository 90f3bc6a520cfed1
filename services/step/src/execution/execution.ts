import type { BatchOptions, EngineRequest, ExecutionTimes, LoadedModel } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import { applyOutputReshape } from '@tutti/model-config'
import {
  type ExecuteOptions,
  executedBefore,
  type NamedTensor,
  type RequestWatch,
  type ResponseSink,
  type StepRequest,
  type StepResponse,
  type StepTimes,
} from '@tutti/tensor'
import { Departures } from './departures.ts'
import { ENGINE_MEMORY } from './engine-memory.ts'
import type { ExecutionContext } from './execution-context.ts'
import { ReaderLag } from './reader-lag.ts'
import {
  cancelError,
  engineError,
  requestDeadlineError,
  unansweredError,
  undeclaredError,
} from './request-errors.ts'
import type { ScheduledState } from './request-state.ts'
import type { Turn } from './response-order.ts'
import type { ExecutionOwner, Waiting } from './scheduler-parts.ts'

type Owner = ExecutionOwner<ScheduledRequest, Execution>

/** One run of a batch on one instance: tells the engine of callers that leave, and its requests of the end. */
export class Execution implements BatchOptions {
  readonly instance: number
  /** Time of the start by the clock, in milliseconds. */
  readonly startedAt: number
  readonly requests: readonly ScheduledRequest[]
  readonly #owner: Owner
  #departures: Departures | undefined
  /** Gives back the memory that is reserved for its engine. */
  #unreserve: (() => void) | undefined
  #isReleased = false
  /** First error of its requests. */
  #failure: ServeError | undefined
  /** True if the watch for faults of devices has learned of its end. */
  #isTold = false

  constructor(owner: Owner, o: Pick<Execution, 'requests' | 'instance' | 'startedAt'>) {
    this.instance = o.instance
    this.startedAt = o.startedAt
    this.requests = o.requests
    this.#owner = owner
    for (const request of o.requests) request.begin(this)
  }

  /** Runs the batch. In the end every request is answered, whatever the engine does. */
  run(model: LoadedModel): void {
    const failed = (error: unknown): void => this.#ended(undefined, engineError(error))
    try {
      this.#unreserve = ENGINE_MEMORY.reserve(this.#inputs())
      model.execute(this.requests, this).then((times) => this.#ended(times), failed)
    } catch (error) {
      failed(error)
    }
  }

  #inputs(): readonly NamedTensor[] {
    const [first, second] = this.requests
    if (first !== undefined && second === undefined) return first.request.inputs
    return this.requests.flatMap(({ request }) => request.inputs)
  }

  /** Notes that the engine failed one of its requests. */
  failed(error: ServeError): void {
    this.#failure ??= error
  }

  #ended(times: ExecutionTimes | undefined, failure?: ServeError): void {
    this.#failure ??= failure
    this.#giveMemoryBack()
    if (times !== undefined) {
      let batchSize = 0
      for (const { request } of this.requests) batchSize += Math.max(1, request.batchSize)
      const { statistics, autoDelay } = this.#owner.context
      statistics.recordExecution({ ...times, batchSize })
      autoDelay?.executed(batchSize, times)
    }
    for (const request of this.requests) request.executed(this, times, failure)
    this.#owner.ended(this)
    const free = this.#tell()
    this.#release(times, free)
  }

  /** Tells the watch for faults of devices how it ended. @returns as `DeviceWatch.executed`. */
  #tell(): Promise<void> | undefined {
    if (this.#isTold) return undefined
    this.#isTold = true
    return this.#owner.context.deviceWatch?.executed(this.instance, this.#failure)
  }

  onAbandon(listener: (request: number) => void): void {
    this.signal.listen(listener)
  }

  /** Made when it is asked for: most engines do not, or only for runs that may be long. */
  get signal(): Departures {
    this.#departures ??= new Departures(this.requests.length)
    return this.#departures
  }

  /** Gives the instance back. An engine that is done with it before it has answered all calls this too. */
  release(times?: ExecutionTimes): void {
    // Its failures are known; that it went well is known at its end alone.
    this.#release(times, this.#failure === undefined ? undefined : this.#tell())
  }

  /** @param free - if the instance is to execute nothing until it resolves. */
  #release(times: ExecutionTimes | undefined, free: Promise<void> | undefined): void {
    if (this.#isReleased) return
    this.#isReleased = true
    // Else the next execution, which begins now, would find too little.
    if (times !== undefined) this.#giveMemoryBack()
    if (free === undefined) this.#owner.released(this.instance, times)
    else void free.then(() => this.#owner.released(this.instance, times))
  }

  #giveMemoryBack(): void {
    this.#unreserve?.()
    this.#unreserve = undefined
  }
}

const NO_TIMES: ExecutionTimes = { computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 }

/**
 * A request between its acceptance and its one final response. To the engine that executes it it is the sink; it passes on
 * what fits the model's configuration, and records how the request went. It listens for cancel and deadline until it is answered.
 */
export class ScheduledRequest implements EngineRequest, ResponseSink {
  request: StepRequest
  /** The options that came with the request; the calls that its model makes belong to the same request. */
  readonly options: ExecuteOptions
  /** Time at which the request began to wait: for its first execution, or for another one. */
  acceptedAt: number
  /** True if the request has executed and waits for another execution. */
  isAgain = false
  /** Infinity without a deadline. */
  readonly deadlineAt: number
  /** Gets its events. */
  readonly watch: RequestWatch | undefined
  /** Set while the request waits. */
  entry: Waiting<ScheduledRequest> | undefined
  readonly #caller: ResponseSink
  readonly #owner: Owner
  readonly #context: ExecutionContext
  readonly #onAbort: () => void
  readonly #clearTimer: (() => void) | undefined
  #state: ScheduledState = 'waiting'
  #startedAt: number
  /** Set while the engine works on it: from the start of the execution to its end. */
  #execution: Execution | undefined
  #turn: Turn | undefined
  /** The last response or error that the engine sent, as long as it is `held`. */
  #held: StepResponse | ServeError | undefined
  /**
   * Gives back what it retains: the outputs of `#held`, or the inputs of a request that was answered while the engine reads them.
   */
  #giveBack: (() => void) | undefined
  /** The lag of the reader of a request with several responses. */
  #lag: ReaderLag | undefined
  /** Calls that the model makes for the request; they end with it. */
  #calls: Set<() => void> | undefined
  /** Text of the last error that such a call ended with. */
  #calledError: string | undefined

  constructor(request: StepRequest, caller: ResponseSink, options: ExecuteOptions, owner: Owner) {
    const { context } = owner
    this.request = request
    this.options = options
    this.acceptedAt = context.clock.now()
    this.#startedAt = this.acceptedAt
    this.#caller = caller
    this.#owner = owner
    this.#context = context
    this.watch = context.observer.began(context.model, request, options)
    this.#onAbort = () => owner.abandon(this, cancelError(options.signal.reason))
    options.signal.addEventListener('abort', this.#onAbort)
    this.deadlineAt = options.deadlineAt ?? Number.POSITIVE_INFINITY
    if (options.deadlineAt !== undefined) {
      const late = (): void => owner.abandon(this, requestDeadlineError(request))
      const delayMs = Math.max(0, options.deadlineAt - this.acceptedAt)
      this.#clearTimer = context.clock.setTimer(delayMs, late)
    }
  }

  /** The model that executes it. */
  get model(): string {
    return this.#context.details.model
  }

  /** Sink of the engine, which is the request itself. */
  get sink(): ResponseSink {
    return this
  }

  get isAnswered(): boolean {
    return this.#state === 'answered' || this.#state === 'abandoned'
  }

  /** Begins with the execution of which the request is a part. */
  begin(execution: Execution): void {
    this.#state = 'running'
    this.#startedAt = execution.startedAt
    this.#execution = execution
    this.#turn = this.#context.order?.claim()
  }

  send(response: StepResponse): void {
    if (this.#state !== 'running') this.#drop()
    else if (response.final) this.#end(response)
    else this.#stream(response)
  }

  fail(error: ServeError): void {
    // An error of another model, passed on, is no fault of the device that this one executes on.
    const isPassedOn = this.#calledError !== undefined && error.message.includes(this.#calledError)
    if (!isPassedOn) this.#execution?.failed(error)
    if (this.#state === 'running') this.#end(error)
    else this.#drop()
  }

  /** Waits first for the request's turn, then for the reader. */
  ready(): Promise<void> | undefined {
    if (this.#state !== 'running') return undefined
    return this.#turn?.ready() ?? this.#caller.ready?.()
  }

  /** Notes that the engine is done: a request without a final response gets an error, an abandoned one is counted. */
  executed(execution: Execution, times?: ExecutionTimes, failure?: ServeError): void {
    if (this.#execution !== execution) return
    this.#execution = undefined
    if (this.#state === 'abandoned') this.#context.events.resultDropped()
    else if (this.#state === 'running' || this.#state === 'held') {
      this.#answer(this.#held ?? failure ?? unansweredError(this.model), times)
    }
    this.#giveBack?.()
  }

  /** Executes the request again, see EngineRequest. Each execution counts as a request in the statistics, as in Triton. */
  again(next: StepRequest): void {
    if (this.#state !== 'running') return
    const times = this.#stepTimes({ ...NO_TIMES, computeInferNs: this.#sinceNs(this.#startedAt) })
    const elapsedNs = this.#sinceNs(this.acceptedAt)
    this.watch?.ended?.({ times, batchSize: next.batchSize, elapsedNs })
    this.#execution = undefined
    this.#state = 'waiting'
    this.isAgain = true
    this.request = next
    this.acceptedAt = this.#context.clock.now()
    this.#owner.again(this)
  }

  /** Answers the caller with an error of the scheduler, whether the request waits or runs. */
  refuse(error: ServeError): void {
    const before = this.#state
    if (this.isAnswered) return
    this.#state = before === 'waiting' ? 'answered' : 'abandoned'
    if (before === 'held') this.#giveBack?.()
    this.#turn?.end()
    const execution = this.#execution
    if (before === 'running') execution?.signal.left(execution.requests.indexOf(this))
    execution?.signal.answered(error)
    if (before !== 'recorded') {
      const elapsedNs = this.#sinceNs(this.acceptedAt)
      const { batchSize } = this.request
      this.watch?.ended?.({ error, executed: executedBefore(error), elapsedNs, batchSize })
    }
    this.#finish(error, undefined)
  }

  /** Calls `end` when the request is answered, at once if it is. @returns takes it back. */
  whenAnswered(end: () => void): () => void {
    this.#calls ??= new Set()
    if (this.isAnswered) end()
    else this.#calls.add(end)
    return () => void this.#calls?.delete(end)
  }

  /** Notes that a call ended with an error which the model makes for the request. */
  callFailed({ message }: ServeError): void {
    this.#calledError = message
  }

  #drop(): void {
    if (this.#state === 'abandoned') return
    this.#context.events.responseOutOfTurn(this.request.context.id)
  }

  /** Takes the engine's last response or its error. */
  #end(outcome: StepResponse | ServeError): void {
    if (this.#context.isDecoupled) {
      return this.#answer(outcome, this.#streamTimes(outcome))
    }
    this.#state = 'held'
    this.#held = outcome
    if (!(outcome instanceof ServeError)) this.#giveBack = outcome.retain?.()
  }

  /**
   * Completes the times that the engine tells of a request with several responses: all other time is the run, whose end is the
   * last response.
   */
  #streamTimes(outcome: StepResponse | ServeError): ExecutionTimes {
    const said = outcome instanceof ServeError ? undefined : outcome.times
    const { computeInputNs = 0, computeOutputNs = 0 } = said ?? {}
    const ns = this.#sinceNs(this.#startedAt) - computeInputNs - computeOutputNs
    return { computeInputNs, computeOutputNs, computeInferNs: Math.max(0, ns) }
  }

  /** Passes a response on that is not the last, unless it breaks the configuration or the reader is too far behind. */
  #stream(response: StepResponse): void {
    this.#lag ??= new ReaderLag()
    const behind = this.#lag.add(response, this.ready() === undefined)
    if (behind !== undefined) return this.#owner.abandon(this, behind)
    const passed = this.#toClient(response)
    // The engine may have no end of its own: it learns that no client reads on.
    if (passed instanceof ServeError) this.#owner.abandon(this, passed)
    else this.#deliver(passed, undefined)
  }

  /** Records how the request went, and answers it. */
  #answer(outcome: StepResponse | ServeError, times: ExecutionTimes = NO_TIMES): void {
    const stepTimes = this.#stepTimes(times)
    const answer = outcome instanceof ServeError ? outcome : this.#toClient(outcome, stepTimes)
    this.#state = 'recorded'
    const { batchSize } = this.request
    const end = { times: stepTimes, batchSize, elapsedNs: this.#sinceNs(this.acceptedAt) }
    if (answer instanceof ServeError) {
      const executed = executedBefore(answer)
      this.watch?.ended?.({ ...end, error: answer, executed, isOfEngine: true })
    } else this.watch?.ended?.(end)
    this.#deliver(answer, stepTimes)
  }

  /**
   * Converts a response for the client, or finds how it breaks the model's configuration. @param times - those of the last
   * response.
   */
  #toClient(response: StepResponse, times?: StepTimes): StepResponse | ServeError {
    const { config, outputs: declared, hasReshape } = this.#context
    const { requestedOutputs: wanted, batchSize } = this.request
    let { outputs } = response
    for (const { name } of outputs) {
      if (!declared.has(name)) return undeclaredError(name, config.name)
    }
    if (wanted.length > 0) outputs = outputs.filter(({ name }) => wanted.includes(name))
    try {
      if (hasReshape) outputs = outputs.map((o) => applyOutputReshape(config, o, batchSize))
    } catch (error) {
      return ServeError.from(error)
    }
    declared.compare(outputs)
    return times === undefined ? { ...response, outputs } : { ...response, outputs, times }
  }

  /** Passes on what came, once it is the request's turn. @param times - of the last. */
  #deliver(outcome: StepResponse | ServeError, times: StepTimes | undefined): void {
    if (this.#turn === undefined) this.#pass(outcome, times)
    else this.#turn.deliver(outcome, () => this.#pass(outcome, times))
  }

  /** Passes an outcome on. After the final response it has no effect. */
  #pass(outcome: StepResponse | ServeError, times: StepTimes | undefined): void {
    if (this.isAnswered) return
    if (!(outcome instanceof ServeError) && !outcome.final) return this.#send(outcome)
    this.#state = 'answered'
    this.#execution?.signal.answered()
    this.#finish(outcome, times)
  }

  /** Gives the caller its last. */
  #finish(outcome: StepResponse | ServeError, times: StepTimes | undefined): void {
    this.options.signal.removeEventListener('abort', this.#onAbort)
    this.#clearTimer?.()
    // An engine that is not done views the inputs until it is.
    if (this.#execution !== undefined) this.#giveBack = this.request.retain?.()
    if (outcome instanceof ServeError) {
      const error = outcome.withDetails(this.#context.details)
      this.#caller.fail(error, executedBefore(outcome), times)
    } else this.#send(outcome)
    this.watch?.answered?.()
    if (this.#calls !== undefined) for (const end of this.#calls) end()
    this.#owner.settled()
  }

  #send(response: StepResponse): void {
    this.watch?.responded?.(response)
    this.#caller.send(response)
  }

  #stepTimes(times: ExecutionTimes): StepTimes {
    return {
      queueNs: Math.round((this.#startedAt - this.acceptedAt) * 1e6) + (times.waitNs ?? 0),
      computeInputNs: times.computeInputNs,
      computeInferNs: times.computeInferNs,
      computeOutputNs: times.computeOutputNs,
      transferNs: 0,
    }
  }

  /** Computes the whole nanoseconds since a time. @param ms - by the clock. */
  #sinceNs(ms: number): number {
    return Math.round((this.#context.clock.now() - ms) * 1e6)
  }
}
