import type { Span } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { ObservedRequest } from '@tutti/telemetry'
import type {
  Executed,
  InferRequest,
  NamedTensor,
  RequestOrigin,
  ResponseSink,
  StepResponse,
  StepTimes,
} from '@tutti/tensor'
import { UNWEIGHED } from '@tutti/transport'
import type { ResolvedEntry, ResolvedPart } from '../catalog/catalog.ts'
import { checkOutputs } from './call-errors.ts'
import { addStepCallTimes, startCallSpan } from './call-spans.ts'
import { acquireMoved, awaitReplica } from './missing-replica.ts'
import type { ChosenPart, ChosenReplica, Pin } from './pin.ts'
import type { RequestCallContext, RequestDependencies } from './request-dependencies.ts'

/** The request of a client or of a model for which calls are made. */
export interface RequestOwner {
  readonly key: string
  readonly pins: Pick<RevisionPins, 'choose' | 'ended' | 'pinOf'> & Partial<PartPins>
  /** The models that called one another up to it, the outermost first; undefined for a client's request. */
  readonly callers: readonly string[] | undefined
  /** The model or ensemble that the request is for, with all that its graph may reach; absent within a part of a graph. */
  readonly root?: ResolvedEntry | undefined
}

/** Chooses replicas for parts; absent where each step has a replica of its own, or all have the same. */
export interface PartPins {
  choosePart: RevisionPins['choosePart']
  partEnded: RevisionPins['partEnded']
}

/** The call of one model version, for a request to it or for a step of an ensemble. */
export interface ModelCall {
  readonly target: ResolvedEntry
  /** Request whose inputs are viewed until the sink has the last response. */
  readonly request: InferRequest
  /** '' for a request to the model itself, and so `step`. */
  readonly ensemble: string
  readonly step: string
  /** Items of the step that this call is about, e.g. `12` or `0..31`, or its iteration in a loop; absent for the whole step. */
  readonly part?: string
  /** Tensors that decide how often the step runs; absent for a step that runs once. */
  readonly controls?: readonly NamedTensor[]
  readonly owner: RequestOwner
  readonly context: RequestCallContext
  /** Inputs of a part that are left out because steps were skipped; absent for none. */
  readonly skipped?: readonly string[]
  /** Attempts at this call, this one included. Default 1. */
  readonly tries?: number
  /** True for the attempt of a hedge. */
  readonly isHedge?: boolean
  /** True for the fallback of a step. */
  readonly isFallback?: boolean
  /** Takes note of what is done around this execution of a step; absent for an execution that is not observed. */
  readonly observed?: ObservedRequest
  /** Called with what observes the execution, for a caller that may leave it. */
  onObserved?(observed: ObservedRequest): void
  /** Numbers each attempt at a step, from 1 within its run. */
  nextAttempt?(): number
  /** Counts the known times of an attempt that failed and is followed by another. */
  addTimes?(times: StepTimes | undefined): void
}

/** Says to which request an attempt belongs. */
export function originOf(owner: RequestOwner, step: string, attempt: number): RequestOrigin {
  const origin = { requestKey: owner.key, step, attempt }
  return owner.callers === undefined ? origin : { ...origin, callers: owner.callers }
}

/** Makes one attempt at one replica, and waits for one while all are suspect. Never throws. */
export function attemptModel(o: RequestDependencies, call: ModelCall, sink: ResponseSink): void {
  new Attempt(o, call, sink).begin()
}

/** One attempt at one replica: checks and measures what comes, passes it on, and gives its place back. */
class Attempt implements ResponseSink {
  readonly #dependencies: RequestDependencies
  readonly #call: ModelCall
  readonly #sink: ResponseSink
  readonly #number: number
  #chosen: ChosenReplica | undefined
  #span: Span | undefined
  #startedAt = 0
  #hasResponded = false
  #hasEnded = false

  constructor(o: RequestDependencies, call: ModelCall, sink: ResponseSink) {
    this.#dependencies = o
    this.#call = call
    this.#sink = sink
    this.#number = call.nextAttempt?.() ?? call.tries ?? 1
  }

  /** @param giveUpAt - how long it waits for a replica; absent for the first time. */
  begin(giveUpAt?: number): void {
    const { target, request, owner, context, step } = this.#call
    const { clock, directory, held, replicas, tracing } = this.#dependencies
    try {
      this.#chosen = owner.pins.choose(this.#dependencies, target, request)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      const { target: revision } = owner.pins.pinOf(target)
      const again = (until?: number): void => this.begin(until)
      const wait = { error, directory, clock, revision, giveUpAt, again, sink: this }
      const hold = (): boolean =>
        held?.hold({ revision, root: owner.root ?? target, context, again, sink: this }) ?? false
      return awaitReplica({ ...wait, hold, signal: context.signal })
    }
    const { pin } = this.#chosen
    const { replica } = this.#chosen.replica.address
    const attempt = this.#number
    this.#span = tracing && startCallSpan(tracing, { ...this.#call, attempt }, replica)
    this.#startedAt = clock.now()
    const trace = this.#span?.traceParent
    replicas.executor(pin.target, replica).execute(request, this, {
      ...context,
      ...(trace !== undefined && { trace }),
      origin: originOf(owner, step, this.#number),
    })
  }

  send(response: StepResponse): void {
    if (this.#hasEnded) return
    const problem = checkOutputs(this.#call, response)
    if (problem !== undefined) return this.fail(problem, 'maybe')
    this.#observe(response.times, true)
    if (this.#chosen?.work.size)
      this.#dependencies.directory.places.work.learn(this.#chosen, response.times)
    this.#hasResponded = true
    if (response.final) this.#end('maybe')
    this.#sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    if (this.#hasEnded) return
    this.#observe(times, false)
    this.#span?.recordError(error)
    this.#end(executed, !this.#call.context.signal.aborted)
    const { revisionRefused, replicaCounts } = this.#dependencies
    const replica = this.#chosen?.replica.address.replica
    if (replicaCounts.isCounting) replicaCounts.failed(this.#call, replica, error)
    if (replica !== undefined && error.reason === 'REVISION_GONE') revisionRefused(replica)
    const located = replica === undefined ? error : error.withDetails({ replica })
    this.#sink.fail(located, executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#hasEnded ? undefined : this.#sink.ready?.()
  }

  #observe(times: StepTimes | undefined, isAnswer: boolean): void {
    if (times === undefined) return
    const { ensemble, step, target } = this.#call
    const elapsedNs = (this.#dependencies.clock.now() - this.#startedAt) * 1e6
    const labels = { ensemble, step, model: target.entry.name }
    const { metrics, replicaCounts } = this.#dependencies
    const callTimes = metrics.observeStep(labels, times, elapsedNs, this.#span?.sampledTraceId)
    if (isAnswer && replicaCounts.isCounting)
      replicaCounts.answered(this.#call, this.#chosen, callTimes)
    // Only the first response of a stream counts.
    if (this.#span && !this.#hasResponded) addStepCallTimes(this.#span, callTimes)
  }

  /** Comes before the sink gets the end, so that another attempt finds the place free. */
  #end(executed: Executed, hasFailed = false): void {
    this.#hasEnded = true
    if (this.#chosen !== undefined) this.#call.owner.pins.ended(this.#chosen, executed, hasFailed)
    this.#span?.end()
  }
}

/**
 * The revisions that one request uses, nested ensembles included: one for each model version, whatever happens meanwhile
 * (invariant 4). It moves only as long as nothing ran, and only to a revision with the same signature.
 */
export class RevisionPins {
  /** Few, mostly one, for which a Map would be large. */
  readonly #pins: Pin[] = []
  /** Replicas that failed an attempt of this request: chosen again only where there is no other. */
  #avoid: Set<string> | undefined

  /**
   * Takes a place at a replica of the request's revision; `ended` follows.
   *
   * @throws ServeError REVISION_GONE if only others are served, STEP_UNAVAILABLE if there is no replica.
   */
  choose(o: RequestDependencies, resolved: ResolvedEntry, request: InferRequest): ChosenReplica {
    const pin = this.pinOf(resolved)
    const { places } = o.directory
    const serving = places.byRevision.get(pin.key)
    let replica = serving?.length === 1 ? serving[0] : undefined
    const work = replica === undefined ? places.work.expect(pin.key, request.inputs) : UNWEIGHED
    const options = { avoid: this.#avoid, workUs: work.us }
    if (replica !== undefined) replica.inFlight += 1
    else replica = places.acquire(pin.target, options)
    replica ??= acquireMoved(o, resolved, pin, options)
    pin.uses += 1
    return { pin, replica, work }
  }

  /**
   * Ends an attempt.
   *
   * @param executed - 'no' if nothing can have run, so that the request may still move.
   * @param hasFailed - the replica failed it.
   */
  ended({ pin, replica, work }: ChosenReplica, executed: Executed, hasFailed: boolean): void {
    replica.inFlight -= 1
    replica.workUs -= work.us
    if (executed === 'no') pin.uses -= 1
    if (hasFailed) this.#toAvoid(replica)
  }

  #toAvoid({ address }: ChosenReplica['replica']): void {
    this.#avoid ??= new Set()
    this.#avoid.add(address.replica)
  }

  /**
   * Takes a place at a replica that has all revisions of a part; `partEnded` follows.
   *
   * @returns undefined if there is none, or the request has moved to another revision of a model.
   */
  choosePart(
    { directory }: Pick<RequestDependencies, 'directory'>,
    { text, models, keys }: ResolvedPart,
    { inputs }: InferRequest,
  ): ChosenPart | undefined {
    const pins = models.map((model) => this.pinOf(model))
    if (pins.some(({ key }, i) => key !== models[i]?.pinnedKey)) return undefined
    const { places } = directory
    const work = places.work.expect(text, inputs)
    const replica = places.acquireCommon(keys, { avoid: this.#avoid, workUs: work.us })
    if (replica === undefined) return undefined
    for (const pin of pins) pin.uses += 1
    return { pins, replica, work, pin: { key: text } }
  }

  /** Ends the call of a part, as `ended` an attempt. */
  partEnded({ pins, replica, work }: ChosenPart, executed: Executed, hasFailed: boolean): void {
    replica.inFlight -= 1
    replica.workUs -= work.us
    if (executed === 'no') for (const pin of pins) pin.uses -= 1
    if (hasFailed) this.#toAvoid(replica)
  }

  /** Finds the pin that the next attempt would use. */
  pinOf(resolved: ResolvedEntry): Pin {
    const { version, pinned: target, pinnedKey: key } = resolved
    const known = this.#pins.find((pin) => pin.version === version)
    if (known !== undefined) return known
    const pin = { version, target, key, uses: 0 }
    this.#pins.push(pin)
    return pin
  }
}
