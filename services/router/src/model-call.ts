import type { Clock, Tracing } from '@tutti/chassis'
import { remainingMs } from '@tutti/chassis'
import { type CancelSignal, type Reason, ServeError } from '@tutti/errors'
import type { ServerMetrics } from '@tutti/front-door'
import type { Envelope, TensorHeader } from '@tutti/protocol'
import type { RequestContext, TensorRef } from '@tutti/tensor'
import type { BearerResponse, StepTimes, TensorBearer } from '@tutti/transport'
import type { StepSink } from './ensemble-execution.ts'
import type { RequestScope } from './request-scope.ts'
import type { ChosenReplica, PinnedVersion, ReplicaChoice } from './revision-pins.ts'

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
export interface ModelCall extends PinnedVersion {
  /** '' for a request to the model itself. */
  readonly ensemble: string
  readonly step: string
  readonly attempt: number
  readonly context: RequestContext
  readonly requestedOutputs: readonly string[]
  readonly inputs: readonly TensorHeader[]
  /** Bytes of `inputs`, in the same order. Viewed until `ended` is called. */
  readonly tensors: readonly TensorRef[]
}

/** Reasons by which a step says that it refused before it executed anything. */
const REFUSALS: ReadonlySet<Reason> = new Set<Reason>([
  'REVISION_GONE',
  'MODEL_NOT_READY',
  'SERVER_STOPPING',
])

/** What a bearer throws says that the step cannot have run, but for these: lost after it was accepted, and faults of ours. */
const MAYBE_EXECUTED: ReadonlySet<Reason> = new Set<Reason>(['STEP_LOST', 'INTERNAL'])

/**
 * Sends one envelope to the least busy replica of the request's revision and hands its responses to `sink`, the last of
 * them final, or one failure. Never throws.
 */
export async function callModel(
  o: CallDependencies,
  call: ModelCall,
  scope: RequestScope,
  signal: CancelSignal,
  sink: StepSink,
): Promise<void> {
  let chosen: ChosenReplica
  try {
    chosen = scope.pins.choose(o, call)
  } catch (error) {
    sink.failed(ServeError.from(error), 'no', undefined)
    return
  }
  await new Attempt(o, call, chosen, sink).run(scope, signal)
}

/** One attempt at one replica. */
class Attempt {
  readonly #o: CallDependencies
  readonly #call: ModelCall
  readonly #chosen: ChosenReplica
  readonly #sink: StepSink
  #isSettled = false

  constructor(o: CallDependencies, call: ModelCall, chosen: ChosenReplica, sink: StepSink) {
    this.#o = o
    this.#call = call
    this.#chosen = chosen
    this.#sink = sink
  }

  async run(scope: RequestScope, signal: CancelSignal): Promise<void> {
    const { clock, tracing, bearer } = this.#o
    const { address } = this.#chosen
    const span = tracing.startSpan(`execute ${this.#call.model}`, {
      kind: 'client',
      parent: scope.trace,
      attributes: spanAttributes(this.#call, address.replica),
    })
    const started = clock.now()
    try {
      const envelope = toEnvelope(this.#o, this.#call, this.#chosen, scope, span.traceParent)
      for await (const response of bearer.call(address, envelope, this.#call.tensors, { signal })) {
        if (response.error !== undefined) span.recordError(response.error)
        this.#take(response, clock.now() - started)
      }
    } catch (error) {
      const failure = ServeError.from(error)
      span.recordError(failure)
      this.#fail(failure, MAYBE_EXECUTED.has(failure.reason) ? 'maybe' : 'no', undefined)
    }
    span.end()
  }

  #take(response: BearerResponse, elapsedMs: number): void {
    if (this.#isSettled) return
    const times = withTransfer(response.times, elapsedMs)
    if (times !== undefined) observe(this.#o.metrics, this.#call, times)
    const { error } = response
    if (error !== undefined) {
      this.#fail(error, REFUSALS.has(error.reason) ? 'no' : 'maybe', times)
      return
    }
    const timed = times === undefined ? response : { ...response, times }
    if (response.final) this.#settle('maybe')
    this.#sink.responded(timed)
  }

  #fail(error: ServeError, executed: 'no' | 'maybe', times: StepTimes | undefined): void {
    const { replica } = this.#chosen.address
    if (!this.#settle(executed)) return
    if (error.reason === 'REVISION_GONE') this.#o.revisionRefused(replica)
    this.#sink.failed(error.withDetails({ replica }), executed, times)
  }

  /** Gives the place back before anybody is told, so that another attempt finds it free. @returns false if it was. */
  #settle(executed: 'no' | 'maybe'): boolean {
    if (this.#isSettled) return false
    this.#isSettled = true
    this.#chosen.ended(executed)
    return true
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
  return {
    requestKey: scope.requestKey,
    model: call.model,
    version: call.version,
    revision: chosen.revision,
    step: call.step,
    attempt: call.attempt,
    context: call.context,
    requestedOutputs: call.requestedOutputs,
    inputs: call.inputs,
    ...(remaining !== undefined && { remainingMs: remaining }),
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
