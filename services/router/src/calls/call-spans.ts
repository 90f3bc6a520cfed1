import type { CallContext, Span, TraceParent, Tracing } from '@tutti/chassis'
import type { StepCallTimes } from '@tutti/telemetry'
import type { ResolvedEntry } from '../catalog/catalog.ts'

/** Starts the span of a client's request to an ensemble. */
export function startEnsembleSpan(
  tracing: Tracing,
  { entry, version }: ResolvedEntry,
  parent: TraceParent | undefined,
): Span {
  const attributes = { 'tutti.model': entry.name, 'tutti.version': version.version }
  return tracing.startSpan(`infer ${entry.name}`, { kind: 'server', parent, attributes })
}

/** Starts the span of one attempt at a model version. */
export function startCallSpan(
  tracing: Tracing,
  call: {
    readonly target: ResolvedEntry
    readonly ensemble: string
    readonly step: string
    readonly part?: string
    readonly attempt: number
    readonly context: CallContext
  },
  replica: string,
): Span {
  const { target, ensemble, step, part, attempt, context } = call
  const { model, version } = target.pinned
  const attributes = {
    'tutti.model': model,
    'tutti.version': version,
    'tutti.replica': replica,
    ...(step !== '' && {
      'tutti.ensemble': ensemble,
      'tutti.step': step,
      'tutti.attempt': attempt,
      ...(part !== undefined && { 'tutti.item': part }),
    }),
  }
  const parent = context.trace
  return tracing.startSpan(`execute ${model}`, { kind: 'client', parent, attributes })
}

/**
 * Says where the time of a call went, as children of its span. The step measured its queue and its computation; the rest is the
 * transfer of both ways, which is drawn before them.
 */
export function addStepCallTimes(
  span: Span,
  { transferNs, queueNs, computeNs }: StepCallTimes,
): void {
  let atMs = 0
  for (const [name, ns] of [
    ['transfer', transferNs],
    ['queue', queueNs],
    ['compute', computeNs],
  ] as const) {
    span.addPart(name, atMs, (atMs += ns / 1e6))
  }
}
