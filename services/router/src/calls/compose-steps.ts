import { type EnsemblePlan, fallbackOf, type PlanStep } from '@tutti/graph'
import { withFallback } from './fallback-call.ts'
import { withHedge } from './hedged-call.ts'
import { observeStep } from './observe-step.ts'
import { callModel, withRetries } from './retried-call.ts'
import type { StepCall } from './step-call.ts'
import { withSlots } from './step-slots.ts'
import { withTimeout } from './timed-call.ts'

const COMPOSED = new WeakMap<EnsemblePlan, readonly StepCall[]>()

/**
 * Returns the calls of an ensemble's steps, which all its requests share: they hold the counts of the bounds.
 *
 * @param callEnsemble - calls a step that is an ensemble itself.
 */
export function stepCallsOf(plan: EnsemblePlan, callEnsemble: StepCall): readonly StepCall[] {
  const known = COMPOSED.get(plan)
  if (known !== undefined) return known
  const calls = plan.steps.map((step) => composeStep(plan, step, callEnsemble))
  COMPOSED.set(plan, calls)
  return calls
}

/** Composes all that is around the call of one step, the outermost last. */
function composeStep(
  plan: EnsemblePlan,
  { call: rules }: PlanStep,
  callEnsemble: StepCall,
): StepCall {
  const { retry, hedge, timeoutMs, onError } = rules
  const isPlain = retry === undefined && hedge === undefined
  const callReplica = isPlain ? callModel : withRetries(rules, withHedge(hedge))
  // An Ensemble leaves retries to its own steps, unless the step says more.
  const callNested = retry === undefined ? callEnsemble : withRetries(rules, callEnsemble)
  const target: StepCall = (o, call, sink) =>
    call.target.plan === undefined ? callReplica(o, call, sink) : callNested(o, call, sink)
  const bounded = withSlots(plan.graph.maxInFlightPerStep, observeStep(plan, target))
  const fallback: StepCall = (o, call, sink) =>
    call.target.plan === undefined ? callModel(o, call, sink) : callEnsemble(o, call, sink)
  return withFallback(
    onError,
    withTimeout(fallbackOf(rules)?.timeoutMs, observeStep(plan, fallback), 'the fallback of '),
    withTimeout(timeoutMs, bounded),
  )
}
