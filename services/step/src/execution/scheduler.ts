import type { ExecutionTimes } from '@tutti/backends'
import { ServeError } from '@tutti/errors'
import { PART_HOST } from '@tutti/graph'
import {
  type ExecuteOptions,
  executedBefore,
  type FindExecutor,
  ReadyGate,
  type ResponseSink,
  type StepRequest,
} from '@tutti/tensor'
import { Execution, ScheduledRequest } from './execution.ts'
import type { ExecutionContext } from './execution-context.ts'
import { cancelError, requestDeadlineError, stoppedError, stoppingError } from './request-errors.ts'
import type {
  BuiltinExecutor,
  Checked,
  ExecutionOwner,
  InstanceChoice,
  PartExecutor,
  SchedulerDependencies,
  VersionTable,
} from './scheduler-parts.ts'

export type CheckedScheduler = Checked<Scheduler>

/**
 * Makes the entry of a step. It finds the model version for each request, so that it may be replaced meanwhile.
 *
 * @param others.builtins - executes the requests for built-ins.
 * @param others.parts - executes the requests for parts of graphs; absent where there are none.
 */
export function createFindExecutor(
  table: VersionTable<CheckedScheduler>,
  replica: string,
  others: { readonly builtins: BuiltinExecutor; readonly parts: PartExecutor | undefined },
): FindExecutor {
  const { builtins, parts } = others
  return (target) => ({
    execute: (request, sink, o) => {
      const { program } = request
      if (parts !== undefined && target.model === PART_HOST.model) {
        return parts.execute(program ?? '', request, sink, o)
      }
      if (program !== undefined) return builtins.execute(target, program, { request, sink, o })
      const { model, version } = target
      try {
        const { check, scheduler, cached = scheduler } = table.findPinned(target)
        scheduler.requests += 1
        cached.execute(check(request), sink, o)
      } catch (error) {
        const failure = ServeError.from(error)
        const details = { model, version: String(version), replica }
        sink.fail(failure.withDetails(details), executedBefore(failure))
      }
    },
  })
}

/** Feeds the instances of one model version from its queue. Owns both; everything else sends it requests. */
export class Scheduler implements ExecutionOwner<ScheduledRequest, Execution> {
  readonly context: ExecutionContext
  /** Requests that came for the version, those too that the cache answers; the one that finds it counts them. */
  requests = 0
  readonly #dependencies: SchedulerDependencies<ScheduledRequest>
  readonly #executions: Execution[] = []
  readonly #drained = new ReadyGate()
  #inFlight = 0
  #isStopping = false
  #isGathering = false
  #isPumping = false
  #timerAt = Number.POSITIVE_INFINITY
  #clearTimer: (() => void) | undefined

  constructor(o: SchedulerDependencies<ScheduledRequest>) {
    this.context = o.context
    this.#dependencies = o
  }

  get load() {
    const { queue, instances } = this.#dependencies
    return { inFlight: this.#inFlight, queued: queue.length, freeSlots: instances.idle }
  }

  /** Executes a request that was checked; as an Executor. */
  execute(request: StepRequest, sink: ResponseSink, o: ExecuteOptions): void {
    const scheduled = new ScheduledRequest(request, sink, o, this)
    this.#inFlight += 1
    const refusal = this.#enqueue(scheduled)
    if (refusal !== undefined) scheduled.refuse(refusal)
    else if (this.#inFlight === 1 || this.context.config.dynamic_batching === undefined) this.pump()
    else if (!this.#isGathering) {
      // Requests that come in one turn of the event loop share a batch, although an instance is free.
      this.#isGathering = true
      setImmediate(() => {
        this.#isGathering = false
        this.pump()
      })
    }
  }

  #enqueue(scheduled: ScheduledRequest): ServeError | undefined {
    const { request, options, acceptedAt, deadlineAt } = scheduled
    if (this.#isStopping) return stoppingError(request)
    if (options.signal.aborted) return cancelError(options.signal.reason)
    if (deadlineAt <= acceptedAt) return requestDeadlineError(request)
    return this.#wait(scheduled)
  }

  /** @returns why the request may not wait. */
  #wait(scheduled: ScheduledRequest): ServeError | undefined {
    const { request, acceptedAt } = scheduled
    try {
      scheduled.entry = this.#dependencies.queue.add(scheduled, request, acceptedAt)
    } catch (error) {
      return ServeError.from(error)
    }
    scheduled.watch?.queued?.()
    return undefined
  }

  /** Starts all that can start now. */
  pump(): void {
    // A request that is refused at once comes back here: thousands of such calls, one within the other, would be too many.
    if (this.#isPumping) return
    this.#isPumping = true
    try {
      this.#startAll(this.context.clock.now())
    } finally {
      this.#isPumping = false
    }
  }

  #startAll(now: number): void {
    const { queue, instances } = this.#dependencies
    if (queue.nextExpiry <= now) this.#expire(now)
    let wakeAt = Number.POSITIVE_INFINITY
    for (let free = instances.pick(now); free >= 0; free = instances.pick(now)) {
      const next = queue.next(now)
      if (typeof next === 'number') {
        wakeAt = next
        break
      }
      this.#start(next, free, now)
    }
    this.#wakeAt(Math.min(wakeAt, queue.nextExpiry), now)
  }

  #start(taken: readonly ScheduledRequest[], instance: number, now: number): void {
    // First: answering below may run code that comes back here for the same instance.
    this.#dependencies.instances.begin(instance)
    for (const scheduled of taken) {
      this.#dequeued(scheduled)
      // The deadline's own timer may be late; what is over is never executed.
      if (scheduled.deadlineAt <= now) scheduled.refuse(requestDeadlineError(scheduled.request))
    }
    // The answer to one request may have ended another of this batch: two steps of one ensemble request.
    const requests = taken.filter((scheduled) => !scheduled.isAnswered)
    if (requests.length === 0) return this.#dependencies.instances.end(instance, undefined)
    const execution = new Execution(this, { requests, instance, startedAt: now })
    this.#executions.push(execution)
    execution.run(this.#dependencies.model)
  }

  again(scheduled: ScheduledRequest): void {
    const refusal = this.#wait(scheduled)
    if (refusal !== undefined) scheduled.refuse(refusal)
  }

  ended(execution: Execution): void {
    this.#executions.splice(this.#executions.indexOf(execution), 1)
  }

  released(instance: number, times: ExecutionTimes | undefined): void {
    this.#dependencies.instances.end(instance, times)
    this.pump()
  }

  settled(): void {
    this.#inFlight -= 1
    if (this.#isStopping && this.#inFlight === 0) this.#drained.open()
  }

  abandon(scheduled: ScheduledRequest, error: ServeError): void {
    if (scheduled.isAnswered) return
    const { entry } = scheduled
    if (entry !== undefined && this.#dependencies.queue.remove(entry)) this.#dequeued(scheduled)
    scheduled.refuse(error)
    // A batch that waited for this request's size or shape may be ready now.
    this.pump()
  }

  /** Notes that a request is out of the queue, whichever way it went. */
  #dequeued(scheduled: ScheduledRequest): void {
    scheduled.entry = undefined
    scheduled.watch?.dequeued?.()
  }

  #expire(now: number): void {
    for (const [scheduled, error] of this.#dependencies.queue.expire(now)) {
      this.#dequeued(scheduled)
      scheduled.refuse(error)
    }
  }

  /** Keeps one timer for everything that time decides. An earlier one that is armed already looks again by itself. */
  #wakeAt(at: number, now: number): void {
    if (at >= this.#timerAt) return
    this.#clearTimer?.()
    this.#timerAt = at
    this.#clearTimer = this.context.clock.setTimer(at - now, () => {
      this.#timerAt = Number.POSITIVE_INFINITY
      this.pump()
    })
  }

  /** Finds the running request that an engine was given as this object. */
  findRunning(request: StepRequest): ScheduledRequest | undefined {
    const running = this.#executions.flatMap(({ requests }) => requests)
    return running.find((scheduled) => scheduled.request === request)
  }

  /** Refuses new requests from now on. @returns resolves when all accepted ones are answered. */
  drain(): Promise<void> {
    this.#isStopping = true
    return this.#inFlight === 0 ? Promise.resolve() : this.#drained.wait()
  }

  /** Answers what waits with SERVER_STOPPING, which may be tried again elsewhere, and what runs with ENGINE_STOPPED. */
  stop(): void {
    this.refuseWaiting()
    for (const { requests } of this.#executions) {
      for (const scheduled of requests) this.abandon(scheduled, stoppedError(scheduled.request))
    }
  }

  /** Starts nothing more: answers what waits, and further requests, with SERVER_STOPPING, which may be tried again elsewhere. */
  refuseWaiting(): void {
    this.#isStopping = true
    this.#clearTimer?.()
    for (const scheduled of this.#dependencies.queue.clear()) {
      this.#dequeued(scheduled)
      const { isAgain, request } = scheduled
      scheduled.refuse(isAgain ? stoppedError(request) : stoppingError(request))
    }
  }
}

/** How much work an instance may have before it, which can no longer be cancelled or overtaken. */
const INFLIGHT_NS = 500_000

/** Part of each new execution in the mean: eight executions are remembered, more or less. */
const MEAN_WEIGHT = 1 / 8

/**
 * The instances of one model version and how many executions each has inflight. An instance gets a further execution while it
 * is busy only if its model is so short that all of them are done within half a millisecond: then the way to the instance costs
 * more than the work there. For every other model what waits stays in the queue, where cancel, priorities and timeouts work.
 */
export class Instances implements InstanceChoice {
  readonly #inflight: number[]
  readonly #maxInflight: number
  /** How many executions an instance may have inflight now. */
  #limit = 1
  #meanNs = 0

  /** @param maxInflight - executions that the engine takes per instance; 1 keeps everything in the queue. */
  constructor(count: number, maxInflight: number) {
    this.#inflight = Array.from({ length: count }, () => 0)
    this.#maxInflight = maxInflight
  }

  /** Instances that execute nothing. */
  get idle(): number {
    return this.#inflight.filter((inflight) => inflight === 0).length
  }

  /** Picks the least busy instance, the first of equally busy ones, so that a quiet model keeps one warm. */
  pick(): number {
    let instance = -1
    let least = this.#limit
    for (let i = 0; i < this.#inflight.length; i += 1) {
      const inflight = this.#inflight[i] ?? 0
      if (inflight >= least) continue
      instance = i
      least = inflight
    }
    return instance
  }

  begin(instance: number): void {
    this.#inflight[instance] = (this.#inflight[instance] ?? 0) + 1
  }

  end(instance: number, times: ExecutionTimes | undefined): void {
    this.#inflight[instance] = (this.#inflight[instance] ?? 1) - 1
    if (times === undefined) return
    const ns = times.computeInputNs + times.computeInferNs + times.computeOutputNs
    // All its requests failed before it computed anything.
    if (ns === 0) return
    const mean = this.#meanNs || ns
    this.#meanNs = mean + (ns - mean) * MEAN_WEIGHT
    this.#limit = Math.min(this.#maxInflight, Math.max(1, Math.floor(INFLIGHT_NS / this.#meanNs)))
  }
}
