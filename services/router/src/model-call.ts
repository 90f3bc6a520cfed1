import type { Clock, Span, Tracing } from '@tutti/chassis'
import { remainingMs } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { ServerMetrics } from '@tutti/front-door'
import type { Envelope, TensorHeader } from '@tutti/protocol'
import type { RequestContext, TensorRef } from '@tutti/tensor'
import {
  type BearerResponse,
  deliverResponses,
  type ResponseReceiver,
  type StepDirectory,
  type StepTimes,
  type TensorBearer,
} from '@tutti/transport'
import type { StepSink } from './ensemble-execution.ts'
import type { RequestScope } from './request-scope.ts'

/** What every call to a step needs from the router. */
export interface CallDependencies {
  readonly bearer: TensorBearer
  readonly directory: StepDirectory
  readonly clock: Clock
  readonly tracing: Tracing
  readonly metrics: ServerMetrics
}

/** One execution of one model version by some replica. */
export interface ModelCall {
  readonly model: string
  readonly version: number
  readonly revision: string
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
const NOT_EXECUTED = new Set(['REVISION_GONE', 'SERVER_STOPPING', 'STEP_UNAVAILABLE'])

/**
 * Sends one envelope to the least busy replica and hands its responses to `sink`, the last of them final, or one failure.
 * Never throws.
 *
 * @param ended - called once, after the last word to `sink`; possibly before this returns.
 */
export function callModel(
  o: CallDependencies,
  call: ModelCall,
  caller: { readonly scope: RequestScope; readonly signal: CancelSignal },
  sink: StepSink & { ended(): void },
): void {
  const place = o.directory.acquire(call)
  if (place === undefined) {
    sink.failed(noReplica(call), 'no', undefined)
    sink.ended()
    return
  }
  const { scope, signal } = caller
  const { replica } = place.address
  const span = o.tracing.startSpan(`execute ${call.model}`, {
    kind: 'client',
    parent: scope.trace,
    ...(o.tracing.isEnabled && { attributes: spanAttributes(call, replica) }),
  })
  const open = new OpenModelCall(o, call, { replica, release: place.release, span, sink })
  try {
    const envelope = toEnvelope(o.clock, call, scope, span.traceParent)
    deliverResponses(o.bearer.call(place.address, envelope, call.tensors, { signal }), open)
  } catch (error) {
    open.failed(error)
  }
}

/** A call that is under way: passes on what comes, and gives its place back at the end. */
class OpenModelCall implements ResponseReceiver<BearerResponse> {
  readonly #o: CallDependencies
  readonly #call: ModelCall
  readonly #replica: string
  readonly #release: () => void
  readonly #span: Span
  readonly #sink: StepSink & { ended(): void }
  readonly #startedAt: number
  #hasEnded = false

  constructor(
    o: CallDependencies,
    call: ModelCall,
    open: {
      readonly replica: string
      readonly release: () => void
      readonly span: Span
      readonly sink: StepSink & { ended(): void }
    },
  ) {
    this.#o = o
    this.#call = call
    this.#replica = open.replica
    this.#release = open.release
    this.#span = open.span
    this.#sink = open.sink
    this.#startedAt = o.clock.now()
  }

  received(response: BearerResponse): void {
    try {
      this.#pass(response)
      if (response.final) this.#end()
    } catch (error) {
      this.failed(error)
    }
  }

  failed(error: unknown): void {
    if (this.#hasEnded) return
    const failure = ServeError.from(error)
    this.#span.recordError(failure)
    this.#sink.failed(failure, NOT_EXECUTED.has(failure.reason) ? 'no' : 'maybe', undefined)
    this.#end()
  }

  #pass(response: BearerResponse): void {
    const times = withTransfer(response.times, this.#o.clock.now() - this.#startedAt)
    if (times !== undefined) observe(this.#o.metrics, this.#call, times)
    if (response.error === undefined) {
      this.#sink.responded(times === undefined ? response : { ...response, times })
      return
    }
    this.#span.recordError(response.error)
    const error = response.error.withDetails({ replica: this.#replica })
    this.#sink.failed(error, NOT_EXECUTED.has(error.reason) ? 'no' : 'maybe', times)
  }

  #end(): void {
    this.#hasEnded = true
    this.#release()
    this.#span.end()
    this.#sink.ended()
  }
}

function toEnvelope(
  clock: Clock,
  call: ModelCall,
  scope: RequestScope,
  trace: { readonly traceparent: string; readonly tracestate?: string } | undefined,
): Envelope {
  const remaining = remainingMs(scope, clock)
  const envelope = {
    requestKey: scope.requestKey,
    model: call.model,
    version: call.version,
    revision: call.revision,
    step: call.step,
    attempt: call.attempt,
    context: call.context,
    requestedOutputs: call.requestedOutputs,
    inputs: call.inputs,
  }
  if (remaining === undefined && trace === undefined) return envelope
  return { ...envelope, ...(remaining !== undefined && { remainingMs: remaining }), ...trace }
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

function noReplica(call: ModelCall): ServeError {
  return new ServeError(
    'STEP_UNAVAILABLE',
    `no replica serves model '${call.model}' version ${call.version}`,
    { details: { model: call.model, version: String(call.version) } },
  )
}
