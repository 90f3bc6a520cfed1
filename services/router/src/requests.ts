import type { Clock, Tracing } from '@tutti/chassis'
import { assert, ServeError } from '@tutti/errors'
import { checkInferRequest } from '@tutti/model-config'
import type { StatisticsRecorder } from '@tutti/server'
import type { Executed, InferRequest, ResponseSink } from '@tutti/tensor'
import type { ResolvedEntry } from './catalog.ts'
import { EnsembleExecution, type ExecutionDependencies } from './ensemble-execution.ts'
import type { CallDependencies } from './model-call.ts'
import type { RequestScope } from './request-scope.ts'
import { callWithRetries } from './retried-call.ts'

/** Answers a request to an ordinary model: the responses of one replica pass through. */
export function inferModel(
  o: CallDependencies,
  { entry, config, version }: ResolvedEntry,
  request: InferRequest,
  sink: ResponseSink,
  scope: RequestScope,
): void {
  const { context, inputs, requestedOutputs } = request
  const call = {
    model: entry.name,
    version: version.version,
    revision: version.revision,
    signature: version.revisions[0]?.signature ?? '',
    ensemble: '',
    step: '',
    attempt: 1,
    context,
    requestedOutputs,
    outputs: requestedOutputs.length > 0 ? requestedOutputs : config.output.map(({ name }) => name),
    inputs,
  }
  callWithRetries(o, call, scope, {
    send: (response) => {
      sink.send(response)
      if (response.final) scope.release()
    },
    fail: (error, executed, times) => {
      sink.fail(error, executed, times)
      scope.release()
    },
    ready: () => sink.ready?.(),
  })
}

/** Answers a request to an ensemble: checks it against the ensemble's own config, then runs the graph. */
export function inferEnsemble(
  o: ExecutionDependencies & {
    readonly tracing: Tracing
    readonly recorder: StatisticsRecorder | undefined
    readonly clock: Clock
  },
  { entry, config, version }: ResolvedEntry,
  request: InferRequest,
  sink: ResponseSink,
  scope: RequestScope,
): void {
  const span = o.tracing.startSpan(`infer ${entry.name}`, {
    kind: 'server',
    parent: scope.trace,
    attributes: { 'tutti.model': entry.name, 'tutti.version': version.version },
  })
  const started = o.clock.now()
  const elapsedNs = (): number => (o.clock.now() - started) * 1e6
  const fail = (error: ServeError, executed: Executed): void => {
    span.recordError(error)
    span.end()
    scope.release()
    sink.fail(error, executed)
  }
  try {
    assert(entry.kind === 'ensemble' && entry.plan !== undefined, `${entry.name} has no plan`)
    const checked = checkInferRequest(config, request)
    const inner: RequestScope = {
      ...scope,
      ...(span.traceParent !== undefined && { trace: span.traceParent }),
    }
    const execution = new EnsembleExecution(o, entry.plan, checked, inner, {
      send: (response) => {
        if (response.final) {
          const requestNs = elapsedNs()
          const batchSize = Math.max(1, checked.batchSize)
          o.recorder?.addPending(-1)
          o.recorder?.recordSuccess({ requestNs, batchSize, ...execution.times })
          o.recorder?.recordExecution({ batchSize, ...execution.times })
          span.end()
          scope.release()
        }
        sink.send(response)
      },
      ready: () => sink.ready?.(),
      fail: (error, executed) => {
        if (o.recorder !== undefined) recordFailure(o.recorder, elapsedNs())
        fail(error, executed)
      },
    })
    o.recorder?.addPending(1)
    // The run itself knows the ensemble's `reshape`, so it gets the inputs as the client shaped them.
    execution.start(request.inputs)
  } catch (error) {
    // Refused before anything ran: counted nowhere, as in Triton.
    fail(ServeError.from(error), 'no')
  }
}

/** Twice, and always OTHER: what Triton 2.51 counts for a failed ensemble request (triton-semantics 9.6). */
function recordFailure(recorder: StatisticsRecorder, requestNs: number): void {
  recorder.addPending(-1)
  for (let i = 0; i < 2; i++) recorder.recordFailure({ requestNs, reason: 'OTHER' })
}
