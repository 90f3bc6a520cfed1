import type { Clock, Span, Tracing } from '@tutti/chassis'
import { remainingMs } from '@tutti/chassis'
import { type CancelSignal, type Reason, ServeError } from '@tutti/errors'
import type { Envelope, TensorHeader } from '@tutti/protocol'
import type { ServerMetrics } from '@tutti/server'
import type { Executed, RequestContext, ResponseSink, StepTimes, TensorRef } from '@tutti/tensor'
import {
  type BearerResponse,
  deliverResponses,
  type ResponseReceiver,
  type TensorBearer,
} from '@tutti/transport'
import { awaitVerdict } from './await-verdict.ts'
import type { RequestScope } from './request-scope.ts'
import type { ChosenReplica, PinnedSignature, ReplicaChoice } from './revision-pins.ts'

/** What every call to a step needs from the router. */
export interface CallDependencies extends ReplicaChoice {
  readonly bearer: TensorBearer
  readonly clock: Clock
  readonly tracing: Tracing
  readonly metrics: ServerMetrics
  /** Told of a replica that does not serve what it was thought to. */
  revisionRefused(replica: string): void
}

/** One execution of one model version by some replica. */
export interface ModelCall extends PinnedSignature {
  /** '' for a request to the model itself. */
  readonly ensemble: string
  readonly step: string
  readonly attempt: number
  readonly context: RequestContext
  readonly requestedOutputs: readonly string[]
  /** Names of all outputs that a response may have. */
  readonly outputs: readonly string[]
  readonly inputs: readonly TensorHeader[]
  /** Bytes of `inputs`, in the same order. Viewed until the sink has had the last. */
  readonly tensors: readonly TensorRef[]
}

/** Reasons by which a step says that it refused before it executed anything. */
const REFUSALS: ReadonlySet<Reason> = new Set<Reason>([
  'REVISION_GONE',
  'MODEL_NOT_READY',
  'SERVER_STOPPING',
])

/** What a bearer throws says that the step cannot have run, but for these: lost after it was accepted, an answer that cannot be, and faults of ours. */
const MAYBE_EXECUTED: ReadonlySet<Reason> = new Set<Reason>([
  'STEP_LOST',
  'INTERNAL',
  'RESPONSE_INVALID',
])

/** For whom a call is made. */
export interface CallOwner {
  readonly scope: RequestScope
  readonly signal: CancelSignal
}

/**
 * Sends one envelope to the least busy replica of the request's revision and hands its responses to `sink`, the last of
 * them final, or one failure. Never throws. While all replicas are suspect it waits for what becomes of them.
 *
 * @param caller.giveUpAt - how long it waits; absent before it has.
 */
export function callModel(
  o: CallDependencies,
  call: ModelCall,
  caller: CallOwner & { readonly giveUpAt?: number },
  sink: ResponseSink,
): void {
  const { scope, signal } = caller
  let chosen: ChosenReplica
  try {
    chosen = scope.pins.choose(o, call)
  } catch (error) {
    const failure = ServeError.from(error)
    if (failure.reason === 'STEP_UNAVAILABLE' && isUndecided(o, call, caller, sink, failure)) return
    refuse(sink, failure)
    return
  }
  const { address } = chosen
  const span = o.tracing.startSpan(`execute ${call.model}`, {
    kind: 'client',
    parent: scope.trace,
    ...(o.tracing.isEnabled && { attributes: spanAttributes(call, address.replica) }),
  })
  const attempt = new Attempt(o, call, { chosen, span, sink })
  try {
    const envelope = toEnvelope(o, call, chosen, scope, span.traceParent)
    deliverResponses(o.bearer.call(address, envelope, call.tensors, { signal }), attempt)
  } catch (error) {
    attempt.failed(error)
  }
}

function refuse(sink: ResponseSink, failure: ServeError): void {
  sink.fail(failure, 'no')
}

/** @returns true if the call goes on, or fails, once it is known what becomes of its suspect replicas. */
function isUndecided(
  o: CallDependencies,
  call: ModelCall,
  caller: CallOwner & { readonly giveUpAt?: number },
  sink: ResponseSink,
  failure: ServeError,
): boolean {
  const { scope, signal, giveUpAt } = caller
  const { model, version } = call
  return awaitVerdict({
    directory: o.directory,
    clock: o.clock,
    revision: { model, version, revision: scope.pins.revisionOf(call) },
    signal,
    giveUpAt,
    decided: (until) => callModel(o, call, { scope, signal, giveUpAt: until }, sink),
    failed: (reason) => refuse(sink, reason ?? failure),
  })
}

/** One attempt at one replica: passes on what comes, and gives its place back. */
class Attempt implements ResponseReceiver<BearerResponse> {
  readonly #o: CallDependencies
  readonly #call: ModelCall
  readonly #chosen: ChosenReplica
  readonly #span: Span
  readonly #sink: ResponseSink
  readonly #startedAt: number
  #hasEnded = false

  constructor(
    o: CallDependencies,
    call: ModelCall,
    open: { readonly chosen: ChosenReplica; readonly span: Span; readonly sink: ResponseSink },
  ) {
    this.#o = o
    this.#call = call
    this.#chosen = open.chosen
    this.#span = open.span
    this.#sink = open.sink
    this.#startedAt = o.clock.now()
  }

  received(response: BearerResponse): void {
    if (this.#hasEnded) return
    try {
      this.#pass(response)
    } catch (error) {
      this.failed(error)
    }
  }

  failed(error: unknown): void {
    if (this.#hasEnded) return
    const failure = ServeError.from(error)
    this.#fail(failure, MAYBE_EXECUTED.has(failure.reason) ? 'maybe' : 'no', undefined)
  }

  room(): Promise<void> | undefined {
    return this.#hasEnded ? undefined : this.#sink.ready?.()
  }

  #pass(response: BearerResponse): void {
    const times = withTransfer(response.times, this.#o.clock.now() - this.#startedAt)
    if (times !== undefined) observe(this.#o.metrics, this.#call, times)
    const { error, final } = response
    if (error !== undefined) {
      this.#fail(error, REFUSALS.has(error.reason) ? 'no' : 'maybe', times)
      return
    }
    this.#checkOutputs(response)
    if (final) this.#end('maybe')
    this.#sink.send(times === undefined ? response : { ...response, times })
  }

  /** The step has checked what its engine gave: what is none of the model's outputs did not come from there. */
  #checkOutputs({ outputs }: BearerResponse): void {
    const wanted = this.#call.outputs
    for (const { name } of outputs) {
      if (wanted.includes(name)) continue
      const text = `model '${this.#call.model}': got output "${name}", want ${wanted.join(', ')}`
      throw new ServeError('RESPONSE_INVALID', text)
    }
  }

  #fail(error: ServeError, executed: Executed, times: StepTimes | undefined): void {
    const { replica } = this.#chosen.address
    this.#span.recordError(error)
    this.#end(executed)
    if (error.reason === 'REVISION_GONE') this.#o.revisionRefused(replica)
    this.#sink.fail(error.withDetails({ replica }), executed, times)
  }

  /** Comes before the sink is told, so that another attempt finds the place free. */
  #end(executed: Executed): void {
    this.#hasEnded = true
    this.#chosen.ended(executed)
    this.#span.end()
  }
}

function toEnvelope(
  { clock }: CallDependencies,
  call: ModelCall,
  chosen: ChosenReplica,
  scope: RequestScope,
  trace: { readonly traceparent: string; readonly tracestate?: string } | undefined,
): Envelope {
  const remaining = remainingMs(scope, clock)
  const envelope = {
    requestKey: scope.requestKey,
    model: call.model,
    version: call.version,
    revision: chosen.revision,
    step: call.step,
    attempt: call.attempt,
    context: call.context,
    requestedOutputs: call.requestedOutputs,
    inputs: call.inputs,
  }
  const { callers } = scope
  if (remaining === undefined && trace === undefined && callers === undefined) return envelope
  return {
    ...envelope,
    ...(remaining !== undefined && { remainingMs: remaining }),
    ...(callers !== undefined && { callers }),
    ...trace,
  }
}

function spanAttributes(call: ModelCall, replica: string): Record<string, string | number> {
  const model = {
    'tutti.model': call.model,
    'tutti.version': call.version,
    'tutti.replica': replica,
  }
  if (call.step === '') return model
  const { ensemble, step, attempt } = call
  return {
    ...model,
    'tutti.ensemble': ensemble,
    'tutti.step': step,
    'tutti.attempt': attempt,
  }
}

/** What the call took beyond the step's own queue and compute is the transfer. */
function withTransfer(times: StepTimes | undefined, elapsedMs: number): StepTimes | undefined {
  if (times === undefined) return undefined
  const own = times.queueNs + times.computeInputNs + times.computeInferNs + times.computeOutputNs
  return { ...times, transferNs: Math.max(0, elapsedMs * 1e6 - own) }
}

function observe(metrics: ServerMetrics, call: ModelCall, times: StepTimes): void {
  metrics.observeStep({
    ensemble: call.ensemble,
    step: call.step,
    model: call.model,
    queueS: times.queueNs / 1e9,
    transferS: times.transferNs / 1e9,
    computeS: (times.computeInputNs + times.computeInferNs + times.computeOutputNs) / 1e9,
  })
}
