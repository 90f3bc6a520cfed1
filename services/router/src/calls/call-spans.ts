import type { CallContext, Span, SpanAttributes, TraceParent, Tracing } from '@tutti/chassis'
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

/** An attempt as its span shows it. */
interface TracedCall {
  readonly target: ResolvedEntry
  readonly ensemble: string
  readonly step: string
  readonly part?: string
  /** Number of the attempt among those at its step, and among those at its call. */
  readonly attempt: number
  readonly tries?: number
  readonly isHedge?: boolean
  readonly isFallback?: boolean
  readonly context: Pick<CallContext, 'trace'> & { readonly within?: string }
}

/** Starts the span of one attempt at a model version. */
export function startCallSpan(tracing: Tracing, call: TracedCall, replica: string): Span {
  const { target, step, context } = call
  const { name } = target.entry
  const attributes = {
    'tutti.model': name,
    'tutti.version': target.pinned.version,
    'tutti.replica': replica,
    ...(step !== '' && stepAttributes(call)),
  }
  const parent = context.trace
  return tracing.startSpan(`execute ${name}`, { kind: 'client', parent, attributes })
}

function stepAttributes(call: TracedCall): SpanAttributes {
  const { ensemble, step, part, tries = 1, isHedge, isFallback, context } = call
  return {
    'tutti.ensemble': ensemble,
    'tutti.step': step,
    // Those of a step are numbered over all of its items.
    'tutti.attempt': part === undefined ? call.attempt : tries,
    ...(part !== undefined && { 'tutti.item': part }),
    ...(context.within !== undefined && { 'tutti.within': context.within }),
    ...(isHedge === true && { 'tutti.hedge': true }),
    ...(isFallback === true && { 'tutti.fallback': true }),
  }
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
