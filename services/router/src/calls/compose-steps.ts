import type { EnsemblePlan, PlanStep } from '@tutti/graph'
import { callHedged } from './hedged-call.ts'
import { callModel } from './model-call.ts'
import { observeStep } from './observe-step.ts'
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
  const { hedge, timeoutMs } = rules
  const callReplica: StepCall =
    hedge === undefined ? callModel : (o, call, sink) => callHedged(o, call, hedge, sink)
  const target: StepCall = (o, call, sink) =>
    call.target.plan === undefined ? callReplica(o, call, sink) : callEnsemble(o, call, sink)
  return withTimeout(timeoutMs, withSlots(plan.graph.maxInFlightPerStep, observeStep(plan, target)))
}
