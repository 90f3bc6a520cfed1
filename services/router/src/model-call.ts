import type { Clock, Span, Tracing } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { ServerMetrics } from '@tutti/server'
import type {
  Executed,
  ExecuteOptions,
  NamedTensor,
  RequestContext,
  ResponseSink,
  StepResponse,
  StepTimes,
  TraceContext,
} from '@tutti/tensor'
import type { FindReplicaExecutor } from '@tutti/transport'
import { awaitReplica } from './await-replica.ts'
import type { RequestScope } from './request-scope.ts'
import type { ChosenReplica, PinnedSignature, ReplicaChoice } from './revision-pins.ts'

/** What every call to a step needs from the router. */
export interface CallDependencies extends ReplicaChoice {
  /** A model version of a replica. */
  readonly replicas: { readonly executor: FindReplicaExecutor }
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
  /** Viewed until the sink has had the last. */
  readonly inputs: readonly NamedTensor[]
}

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
  const { model, version, requestedOutputs, context } = call
  const target = { model, version, revision: chosen.revision }
  const attempt = new Attempt(o, call, { chosen, span, sink })
  const options = toOptions(call, scope, signal, span.traceParent)
  const request = { context, requestedOutputs, inputs: call.inputs }
  o.replicas.executor(target, address.replica).execute(request, attempt, options)
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
  return awaitReplica({
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
class Attempt implements ResponseSink {
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

  send(response: StepResponse): void {
    if (this.#hasEnded) return
    const problem = this.#checkOutputs(response)
    if (problem !== undefined) return this.fail(problem, 'maybe')
    const times = withTransfer(response.times, this.#o.clock.now() - this.#startedAt)
    if (times !== undefined) observe(this.#o.metrics, this.#call, times)
    if (response.final) this.#end('maybe')
    this.#sink.send(times === undefined ? response : { ...response, times })
  }

  fail(error: ServeError, executed: Executed, stepTimes?: StepTimes): void {
    if (this.#hasEnded) return
    const times = withTransfer(stepTimes, this.#o.clock.now() - this.#startedAt)
    if (times !== undefined) observe(this.#o.metrics, this.#call, times)
    const { replica } = this.#chosen.address
    this.#span.recordError(error)
    this.#end(executed)
    if (error.reason === 'REVISION_GONE') this.#o.revisionRefused(replica)
    this.#sink.fail(error.withDetails({ replica }), executed, times)
  }

  ready(): Promise<void> | undefined {
    return this.#hasEnded ? undefined : this.#sink.ready?.()
  }

  /** The step has checked what its engine gave: what is none of the model's outputs did not come from there. */
  #checkOutputs({ outputs }: StepResponse): ServeError | undefined {
    const wanted = this.#call.outputs
    for (const { name } of outputs) {
      if (wanted.includes(name)) continue
      const text = `model '${this.#call.model}': got output "${name}", want ${wanted.join(', ')}`
      return new ServeError('RESPONSE_INVALID', text)
    }
    return undefined
  }

  /** Comes before the sink is told, so that another attempt finds the place free. */
  #end(executed: Executed): void {
    this.#hasEnded = true
    this.#chosen.ended(executed)
    this.#span.end()
  }
}

function toOptions(
  { step, attempt }: ModelCall,
  { requestKey, deadlineAt, callers }: RequestScope,
  signal: CancelSignal,
  trace: TraceContext | undefined,
): ExecuteOptions {
  const origin = { requestKey, step, attempt }
  const options = { signal, origin: callers === undefined ? origin : { ...origin, callers } }
  if (deadlineAt === undefined && trace === undefined) return options
  return {
    ...options,
    ...(deadlineAt !== undefined && { deadlineAt }),
    ...(trace !== undefined && { trace }),
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
