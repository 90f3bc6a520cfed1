import type { CallContext, Clock, Span, Tracing } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { ServerMetrics } from '@tutti/server'
import type {
  Executed,
  ExecuteOptions,
  InferRequest,
  ResponseSink,
  StepResponse,
  StepTimes,
  TraceContext,
} from '@tutti/tensor'
import type { FindReplicaExecutor } from '@tutti/transport'
import { startCallSpan } from './call-spans.ts'
import type { CatalogVersion, ResolvedEntry } from './catalog.ts'
import {
  acquireMoved,
  awaitReplica,
  type Pin,
  type Place,
  type ReplicaChoice,
} from './missing-replica.ts'

/** What every call to a model version needs from the router. */
export interface CallDependencies extends ReplicaChoice {
  /** A model version of a replica. */
  readonly replicas: { readonly executor: FindReplicaExecutor }
  /** Called with a replica that does not serve what it was thought to. */
  readonly revisionRefused: (replica: string) => void
  readonly clock: Clock
  readonly metrics: ServerMetrics
  /** Absent if spans lead nowhere. */
  readonly tracing: Tracing | undefined
}

/** The request of a client or of a model for which calls are made. */
export interface RequestOwner {
  readonly key: string
  readonly pins: RevisionPins
  /** The models that called one another up to it, the outermost first; undefined for a client's request. */
  readonly callers: readonly string[] | undefined
}

/** One attempt at one model version, for a request to it or for a step of an ensemble. */
export interface ModelCall {
  readonly target: ResolvedEntry
  /** Its inputs are viewed until the sink has had the last response. */
  readonly request: InferRequest
  /** '' for a request to the model itself, and so `step`. */
  readonly ensemble: string
  readonly step: string
  readonly attempt: number
  readonly owner: RequestOwner
  /** The deadline and the trace. */
  readonly context: CallContext
  readonly signal: CancelSignal
}

/**
 * Calls the least busy replica of the request's revision and hands its responses to `sink`, the last of them final, or one
 * failure. Never throws. While all replicas are suspect it waits until that is decided.
 *
 * @param giveUpAt - how long it waits; absent for the first time.
 */
export function callModel(
  o: CallDependencies,
  call: ModelCall,
  sink: ResponseSink,
  giveUpAt?: number,
): void {
  let chosen: ChosenReplica
  try {
    chosen = call.owner.pins.choose(o, call.target)
  } catch (error) {
    const { directory, clock } = o
    return awaitReplica({
      error: ServeError.from(error),
      directory,
      clock,
      revision: call.owner.pins.pinOf(call.target).target,
      signal: call.signal,
      giveUpAt,
      again: (until) => callModel(o, call, sink, until),
      sink,
    })
  }
  const { replica } = chosen.place.address
  const span = o.tracing && startCallSpan(o.tracing, call, replica)
  const options = toOptions(call, span === undefined ? call.context.trace : span.traceParent)
  const attempt = new Attempt(o, call, chosen, { sink, span })
  o.replicas.executor(chosen.pin.target, replica).execute(call.request, attempt, options)
}

function toOptions(
  { step, attempt, owner, context, signal }: ModelCall,
  trace: TraceContext | undefined,
): ExecuteOptions {
  const { key: requestKey, callers } = owner
  const { deadlineAt } = context
  const origin = { requestKey, step, attempt }
  const options = { signal, origin: callers === undefined ? origin : { ...origin, callers } }
  if (deadlineAt === undefined && trace === undefined) return options
  return {
    ...options,
    ...(deadlineAt !== undefined && { deadlineAt }),
    ...(trace !== undefined && { trace }),
  }
}

/** One attempt at one replica: checks and measures what comes, passes it on, and gives its place back. */
class Attempt implements ResponseSink {
  readonly #o: CallDependencies
  readonly #call: ModelCall
  readonly #chosen: ChosenReplica
  readonly #sink: ResponseSink
  readonly #span: Span | undefined
  readonly #startedAt: number
  #hasEnded = false

  constructor(
    o: CallDependencies,
    call: ModelCall,
    chosen: ChosenReplica,
    { sink, span }: { readonly sink: ResponseSink; readonly span: Span | undefined },
  ) {
    this.#o = o
    this.#call = call
    this.#chosen = chosen
    this.#sink = sink
    this.#span = span
    this.#startedAt = o.clock.now()
  }

  send(response: StepResponse): void {
    if (this.#hasEnded) return
    const problem = this.#checkOutputs(response)
    if (problem !== undefined) return this.fail(problem, 'maybe')
    this.#observe(response.times)
    if (response.final) this.#end('maybe')
    this.#sink.send(response)
  }

  fail(error: ServeError, executed: Executed, times?: StepTimes): void {
    if (this.#hasEnded) return
    this.#observe(times)
    const { replica } = this.#chosen.place.address
    this.#span?.recordError(error)
    this.#end(executed)
    if (error.reason === 'REVISION_GONE') this.#o.revisionRefused(replica)
    this.#sink.fail(error.withDetails({ replica }), executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#hasEnded ? undefined : this.#sink.ready?.()
  }

  /** The step has checked its engine's outputs: another one is a fault of the step or of the way. */
  #checkOutputs({ outputs }: StepResponse): ServeError | undefined {
    const { target, request } = this.#call
    const wanted = request.requestedOutputs.length > 0 ? request.requestedOutputs : target.outputs
    for (const { name } of outputs) {
      if (wanted.includes(name)) continue
      const text = `model '${target.entry.name}': got output "${name}", want ${wanted.join(', ')}`
      return new ServeError('RESPONSE_INVALID', text)
    }
    return undefined
  }

  /** What the call took beyond the step's own queue and compute is the transfer. */
  #observe(times: StepTimes | undefined): void {
    if (times === undefined) return
    const { ensemble, step, target } = this.#call
    const computeNs = times.computeInputNs + times.computeInferNs + times.computeOutputNs
    const elapsedNs = (this.#o.clock.now() - this.#startedAt) * 1e6
    this.#o.metrics.observeStep({
      ensemble,
      step,
      model: target.entry.name,
      queueS: times.queueNs / 1e9,
      transferS: Math.max(0, elapsedNs - times.queueNs - computeNs) / 1e9,
      computeS: computeNs / 1e9,
    })
  }

  /** Comes before the sink gets the end, so that another attempt finds the place free. */
  #end(executed: Executed): void {
    this.#hasEnded = true
    this.#call.owner.pins.ended(this.#chosen, executed)
    this.#span?.end()
  }
}

/** A place at a replica for one attempt. */
interface ChosenReplica {
  readonly pin: Pin
  readonly place: Place
}

/**
 * The revisions that one request uses, nested ensembles included: one for each model version, whatever happens meanwhile
 * (invariant 4). It moves only as long as nothing ran, and only to a revision with the same signature.
 */
export class RevisionPins {
  readonly #pins = new Map<CatalogVersion, Pin>()
  /** Replicas that failed an attempt of this request: chosen again only where there is no other. */
  #avoid: Set<string> | undefined

  /**
   * Takes a place at a replica of the request's revision; `ended` follows.
   *
   * @throws ServeError REVISION_GONE if only others are served, STEP_UNAVAILABLE if there is no replica.
   */
  choose(o: CallDependencies, resolved: ResolvedEntry): ChosenReplica {
    const pin = this.pinOf(resolved)
    const { directory } = o
    const place =
      directory.acquire(pin.target, this.#avoid) ?? acquireMoved(o, resolved, pin, this.#avoid)
    pin.uses += 1
    return { pin, place }
  }

  /** Ends an attempt. @param executed - 'no' if nothing can have run, so that the request may still move. */
  ended({ pin, place }: ChosenReplica, executed: Executed): void {
    place.release()
    if (executed === 'maybe') return
    pin.uses -= 1
    this.#avoid ??= new Set()
    this.#avoid.add(place.address.replica)
  }

  /** What the next attempt would use. */
  pinOf(resolved: ResolvedEntry): Pin {
    const known = this.#pins.get(resolved.version)
    if (known !== undefined) return known
    const pin = { target: resolved.pinned, uses: 0 }
    this.#pins.set(resolved.version, pin)
    return pin
  }
}
