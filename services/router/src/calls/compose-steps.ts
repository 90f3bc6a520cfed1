import { type EnsemblePlan, fallbackOf, type PlanStep } from '@tutti/graph'
import { withDefault } from './default-answer.ts'
import { withFallback } from './fallback-call.ts'
import { withHedge } from './hedged-call.ts'
import { withLoop } from './looped-call.ts'
import { withForEach } from './mapped-call.ts'
import { observeStep } from './observe-step.ts'
import { withPartSpan, withRepeatSpan } from './repeat-spans.ts'
import { callModel, withRetries } from './retried-call.ts'
import type { StepCall } from './step-call.ts'
import { withSlots } from './step-slots.ts'
import { withTimeout } from './timed-call.ts'

/** Calls of what is a graph itself. */
interface GraphCalls {
  readonly nested: StepCall
  readonly part: StepCall
}

const COMPOSED = new WeakMap<EnsemblePlan, readonly StepCall[]>()

/**
 * Returns the calls of an ensemble's steps, which all its requests share: they hold the counts of the bounds.
 *
 * @param calls - of steps that are ensembles themselves, and of those that are parts of the graph.
 */
export function stepCallsOf(plan: EnsemblePlan, calls: GraphCalls): readonly StepCall[] {
  const known = COMPOSED.get(plan)
  if (known !== undefined) return known
  const composed = plan.steps.map((step) =>
    step.part === undefined
      ? composeStep(plan, step, calls.nested)
      : withSlots(plan.graph.maxInFlightPerStep, calls.part),
  )
  COMPOSED.set(plan, composed)
  return composed
}

/** Composes all that is around the call of one step, the outermost last. */
function composeStep(plan: EnsemblePlan, step: PlanStep, callEnsemble: StepCall): StepCall {
  const { call: rules, forEach, loop } = step
  const { retry, hedge, timeoutMs, onError } = rules
  const isPlain = retry === undefined && hedge === undefined
  const callReplica = isPlain ? callModel : withRetries(rules, withHedge(hedge))
  // An Ensemble leaves retries to its own steps, unless the step says more.
  const callNested = retry === undefined ? callEnsemble : withRetries(rules, callEnsemble)
  const target: StepCall = (o, call, sink) =>
    call.target.plan === undefined ? callReplica(o, call, sink) : callNested(o, call, sink)
  const { maxInFlightPerStep } = plan.graph
  const repeated = (once: StepCall): StepCall =>
    repeats(step)
      ? withRepeatSpan(step, withForEach(forEach, withLoop(loop, withPartSpan(step, once))))
      : once
  // An execution is observed from its begin on: one that repeats begins before it waits for a place.
  const bounded = repeats(step)
    ? observeStep(plan, repeated(withSlots(maxInFlightPerStep, target)))
    : withSlots(maxInFlightPerStep, observeStep(plan, target))
  const fallback: StepCall = (o, call, sink) =>
    call.target.plan === undefined ? callModel(o, call, sink) : callEnsemble(o, call, sink)
  const answered = withDefault(plan, step, withTimeout(timeoutMs, bounded))
  return withFallback(
    onError,
    withTimeout(
      fallbackOf(rules)?.timeoutMs,
      observeStep(plan, repeated(fallback)),
      'the fallback of ',
    ),
    answered,
  )
}

/** Tells whether a step runs several times for one request. */
export function repeats({ forEach, loop }: Pick<PlanStep, 'forEach' | 'loop'>): boolean {
  return forEach !== undefined || loop !== undefined
}
