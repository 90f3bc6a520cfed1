import type { ExecutionTimes, LoadedModel } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import { toFailureReason } from '@tutti/server'
import {
  type ExecuteOptions,
  type ResponseSink,
  requestPrefix,
  type StepRequest,
} from '@tutti/tensor'
import type { QueueEntry } from '../queue/queue-entry.ts'
import type { RequestQueue } from '../queue/request-queue.ts'
import { Execution } from './execution.ts'
import type { ExecutionHost } from './execution-host.ts'
import { InstanceLines } from './instance-lines.ts'
import {
  cancelError,
  deadlineError,
  type RequestOwner,
  ScheduledRequest,
  toNs,
} from './scheduled-request.ts'

/** How busy one model version is. */
export interface SchedulerLoad {
  /** Accepted and not yet answered, in requests. */
  readonly inFlight: number
  /** Of those, how many wait for an instance. */
  readonly queued: number
  /** Instances that execute nothing; an abandoned call keeps its instance. */
  readonly freeSlots: number
}

/** Feeds the instances of one model version from its queue. Owns both; everything else sends it requests. */
export class Scheduler implements RequestOwner {
  readonly #model: LoadedModel
  readonly host: ExecutionHost
  readonly #queue: RequestQueue<ScheduledRequest>
  readonly #batchKey: (request: StepRequest) => string
  readonly #lines: InstanceLines
  readonly #running = new Set<ScheduledRequest>()
  #inFlight = 0
  #isStopping = false
  #idle: (() => void)[] = []
  #timerAt = Number.POSITIVE_INFINITY
  #clearTimer: (() => void) | undefined

  constructor(o: {
    readonly model: LoadedModel
    readonly host: ExecutionHost
    readonly queue: RequestQueue<ScheduledRequest>
    readonly batchKey: (request: StepRequest) => string
    readonly instances: number
    /** Executions that an instance may have open, if they are short. */
    readonly openExecutions: number
  }) {
    this.#model = o.model
    this.host = o.host
    this.#queue = o.queue
    this.#batchKey = o.batchKey
    this.#lines = new InstanceLines(o.instances, o.openExecutions)
  }

  get load(): SchedulerLoad {
    return {
      inFlight: this.#inFlight,
      queued: this.#queue.length,
      freeSlots: this.#lines.idle,
    }
  }

  /** Executes a request that was checked; as an Executor. */
  execute(request: StepRequest, sink: ResponseSink, o: ExecuteOptions): void {
    this.#inFlight += 1
    const accepted = new ScheduledRequest(request, sink, o, this)
    const refusal = this.#enqueue(accepted)
    if (refusal !== undefined) this.#fail(accepted, refusal)
    else this.#pump()
  }

  settled(): void {
    this.#inFlight -= 1
    if (this.#inFlight === 0) for (const wake of this.#idle.splice(0)) wake()
  }

  abandon(accepted: ScheduledRequest, error: ServeError): void {
    if (accepted.isAnswered) return
    if (accepted.entry !== undefined && this.#queue.remove(accepted.entry)) this.#left(accepted)
    if (accepted.abandoned(error)) this.#recordFailure(accepted, error)
    accepted.refuse(error)
    // A batch that waited for this request's size or shape may be ready now.
    this.#pump()
  }

  /** The running request that an engine was given as this object. */
  findRunning(request: StepRequest): ScheduledRequest | undefined {
    for (const accepted of this.#running) if (accepted.request === request) return accepted
    return undefined
  }

  /** Refuses new requests from now on. @returns resolves when all accepted ones are answered. */
  drain(): Promise<void> {
    this.#isStopping = true
    if (this.#inFlight === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /**
   * Answers whatever is not answered yet, and starts nothing more: what waits with SERVER_STOPPING, what runs with
   * ENGINE_STOPPED, because only the former may be tried again elsewhere.
   */
  stop(): void {
    this.#isStopping = true
    this.#clearTimer?.()
    this.#clearTimer = undefined
    this.#timerAt = Number.NEGATIVE_INFINITY
    for (const { item } of this.#queue.clear()) {
      this.#left(item)
      this.#fail(item, stoppingError(item.request))
    }
    for (const accepted of this.#running) this.abandon(accepted, stoppedError(accepted.request))
  }

  #enqueue(accepted: ScheduledRequest): ServeError | undefined {
    const { request, options } = accepted
    if (this.#isStopping) return stoppingError(request)
    if (options.signal.aborted) return cancelError(options.signal.reason)
    if (accepted.deadlineAt <= accepted.acceptedAt) return deadlineError(request)
    const { priority, timeoutUs } = request.context
    try {
      accepted.entry = this.#queue.add(
        {
          item: accepted,
          size: request.batchSize,
          key: this.#batchKey(request),
          priority,
          timeoutUs,
        },
        accepted.acceptedAt,
      )
    } catch (error) {
      return ServeError.from(error).withPrefix(requestPrefix(request.context.id))
    }
    this.host.statistics.addPending(1)
    return undefined
  }

  #pump(): void {
    const now = this.host.clock.now()
    if (this.#queue.nextExpiry <= now) this.#expire(now)
    let wakeAt = Number.POSITIVE_INFINITY
    while (this.#lines.hasRoom) {
      const decision = this.#queue.next(now)
      if (decision.kind === 'wait') wakeAt = decision.until
      if (decision.kind !== 'batch') break
      this.#start(decision.entries, now)
    }
    this.#wakeAt(Math.min(wakeAt, this.#queue.nextExpiry), now)
  }

  #start(entries: readonly QueueEntry<ScheduledRequest>[], now: number): void {
    // Taken first: answering below may run code that comes back here for the same instance.
    const instance = this.#lines.enter()
    for (const { item } of entries) {
      this.#left(item)
      // The deadline's own timer may be late; what is over is never executed.
      if (item.deadlineAt <= now) this.#fail(item, deadlineError(item.request))
    }
    // The answer to one request may have ended another of this batch: two steps of one ensemble request.
    const batch = entries.map(({ item }) => item).filter((item) => !item.isAnswered)
    if (batch.length === 0) this.#lines.leave(instance, undefined)
    else this.#run(batch, instance, now)
  }

  #run(batch: readonly ScheduledRequest[], instance: number, now: number): void {
    for (const accepted of batch) this.#running.add(accepted)
    let hasLeft = false
    const leave = (times: ExecutionTimes | undefined): void => {
      if (hasLeft) return
      hasLeft = true
      this.#lines.leave(instance, times)
      this.#pump()
    }
    const o = { instance, startedAt: now, release: () => leave(undefined) }
    void new Execution(this.host, batch, o)
      .run(this.#model)
      .then((times) => this.#finished(batch, () => leave(times)))
  }

  #finished(batch: readonly ScheduledRequest[], leave: () => void): void {
    for (const accepted of batch) this.#running.delete(accepted)
    leave()
  }

  #expire(now: number): void {
    for (const { item } of this.#queue.expire(now)) {
      this.#left(item)
      this.#fail(item, new ServeError('QUEUE_TIMEOUT', 'Request timeout expired'))
    }
  }

  /** Keeps one timer for everything that time decides. An earlier one that is armed already looks again by itself. */
  #wakeAt(at: number, now: number): void {
    if (at >= this.#timerAt) return
    this.#clearTimer?.()
    this.#timerAt = at
    this.#clearTimer = this.host.clock.setTimer(at - now, () => {
      this.#timerAt = Number.POSITIVE_INFINITY
      this.#clearTimer = undefined
      this.#pump()
    })
  }

  #fail(accepted: ScheduledRequest, error: ServeError): void {
    if (accepted.isAnswered) return
    this.#recordFailure(accepted, error)
    accepted.refuse(error)
  }

  #recordFailure(accepted: ScheduledRequest, error: ServeError): void {
    const { clock, statistics } = this.host
    const requestNs = toNs(clock.now() - accepted.acceptedAt)
    statistics.recordFailure({ requestNs, reason: toFailureReason(error) })
  }

  /** Notes that a request is out of the queue, whichever way it went. */
  #left(accepted: ScheduledRequest): void {
    accepted.entry = undefined
    this.host.statistics.addPending(-1)
  }
}

/** Triton's text for a request that comes while the server goes away. */
function stoppingError(request: StepRequest): ServeError {
  return new ServeError(
    'SERVER_STOPPING',
    `${requestPrefix(request.context.id)}Server is stopping, scheduler for model has stopped accepting new inference requests`,
  )
}

function stoppedError(request: StepRequest): ServeError {
  return new ServeError(
    'ENGINE_STOPPED',
    `${requestPrefix(request.context.id)}Server is stopping, the execution was given up`,
  )
}
