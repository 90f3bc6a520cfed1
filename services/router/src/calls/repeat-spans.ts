import type { Span, Tracing } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import type { PlanStep } from '@tutti/graph'
import type { ObservedRequest } from '@tutti/telemetry'
import { endingSink, type StepCount } from '@tutti/tensor'
import type { ModelCall } from './model-call.ts'
import type { StepCall } from './step-call.ts'

/** Attributes of the things that are counted around a step that repeats. */
const ATTRIBUTES: Readonly<Partial<Record<StepCount, string>>> = {
  items: 'tutti.items',
  itemCalls: 'tutti.item_calls',
  failedItems: 'tutti.failed_items',
  iterations: 'tutti.iterations',
}

/** Makes the span of a step that repeats, which has those of its calls under it, and how many they were. */
export function withRepeatSpan({ forEach }: Pick<PlanStep, 'forEach'>, next: StepCall): StepCall {
  const kind = forEach === undefined ? 'loop' : 'for each'
  return (o, call, sink) => {
    if (o.tracing === undefined) return next(o, call, sink)
    const span = startSpan(o.tracing, `${kind} ${call.step}`, call)
    const observed = countingInto(span, call.observed)
    next(o, { ...call, ...under(span, call), observed }, endingSink(sink, endOf(span)))
  }
}

/** Makes the span of an ensemble that runs for an item or in an iteration. An attempt at a model has its own. */
export function withPartSpan({ forEach }: Pick<PlanStep, 'forEach'>, next: StepCall): StepCall {
  const kind = forEach === undefined ? 'iteration' : 'item'
  return (o, call, sink) => {
    if (o.tracing === undefined || call.target.plan === undefined) return next(o, call, sink)
    const span = startSpan(o.tracing, `${kind} ${call.step}`, call)
    next(o, { ...call, ...under(span, call) }, endingSink(sink, endOf(span)))
  }
}

function startSpan(
  tracing: Tracing,
  name: string,
  { ensemble, step, target, part, context }: ModelCall,
): Span {
  const attributes = {
    'tutti.model': target.entry.name,
    'tutti.ensemble': ensemble,
    'tutti.step': step,
    ...(part !== undefined && { 'tutti.item': part }),
  }
  return tracing.startSpan(name, { kind: 'internal', parent: context.trace, attributes })
}

/** Puts what is called under the span. */
function under(span: Span, { context }: ModelCall): Pick<ModelCall, 'context'> {
  const { traceParent: trace } = span
  return { context: { ...context, ...(trace && { trace }), span } }
}

function countingInto(span: Span, observed: ObservedRequest | undefined): ObservedRequest {
  return {
    counted: (what, count, reason) => {
      const attribute = ATTRIBUTES[what]
      if (attribute !== undefined) span.setAttributes({ [attribute]: count })
      observed?.counted(what, count, reason)
    },
    left: (error) => observed?.left(error),
  }
}

function endOf(span: Span): (error?: ServeError) => void {
  return (error) => {
    if (error !== undefined) span.recordError(error)
    span.end()
  }
}
