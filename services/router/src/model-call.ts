import type { Clock, Tracing } from '@tutti/chassis'
import { remainingMs } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { ServerMetrics } from '@tutti/front-door'
import type { Envelope, TensorHeader } from '@tutti/protocol'
import type { RequestContext, TensorRef } from '@tutti/tensor'
import type { StepDirectory, StepTimes, TensorBearer } from '@tutti/transport'
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
 */
export async function callModel(
  o: CallDependencies,
  call: ModelCall,
  scope: RequestScope,
  signal: CancelSignal,
  sink: StepSink,
): Promise<void> {
  const place = o.directory.acquire(call)
  if (place === undefined) {
    sink.failed(noReplica(call), 'no', undefined)
    return
  }
  const span = o.tracing.startSpan(`execute ${call.model}`, {
    kind: 'client',
    parent: scope.trace,
    attributes: spanAttributes(call, place.address.replica),
  })
  const started = o.clock.now()
  try {
    const envelope = toEnvelope(o.clock, call, scope, span.traceParent)
    for await (const response of o.bearer.call(place.address, envelope, call.tensors, { signal })) {
      const times = withTransfer(response.times, o.clock.now() - started)
      if (times !== undefined) observe(o.metrics, call, times)
      if (response.error === undefined) {
        sink.responded(times === undefined ? response : { ...response, times })
        continue
      }
      span.recordError(response.error)
      const error = response.error.withDetails({ replica: place.address.replica })
      sink.failed(error, NOT_EXECUTED.has(error.reason) ? 'no' : 'maybe', times)
    }
  } catch (error) {
    const failure = ServeError.from(error)
    span.recordError(failure)
    sink.failed(failure, NOT_EXECUTED.has(failure.reason) ? 'no' : 'maybe', undefined)
  } finally {
    place.release()
    span.end()
  }
}

function toEnvelope(
  clock: Clock,
  call: ModelCall,
  scope: RequestScope,
  trace: { readonly traceparent: string; readonly tracestate?: string } | undefined,
): Envelope {
  const remaining = remainingMs(scope, clock)
  return {
    requestKey: scope.requestKey,
    model: call.model,
    version: call.version,
    revision: call.revision,
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

function noReplica(call: ModelCall): ServeError {
  return new ServeError(
    'STEP_UNAVAILABLE',
    `no replica serves model '${call.model}' version ${call.version}`,
    { details: { model: call.model, version: String(call.version) } },
  )
}
