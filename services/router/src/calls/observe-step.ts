import type { EnsemblePlan } from '@tutti/graph'
import { observeRequest } from '@tutti/telemetry'
import type { ObservedModel } from '@tutti/tensor'
import type { ModelCall } from './model-call.ts'
import type { StepCall } from './step-call.ts'

/**
 * Observes the executions of a step, where its request is observed. They count from their begin, not while they wait for a place.
 *
 * @param ensemble - plan of the ensemble that has the step.
 */
export function observeStep(ensemble: EnsemblePlan, next: StepCall): StepCall {
  return (o, call, sink) => {
    const { observer } = call.context
    if (observer === undefined) return next(o, call, sink)
    const { request, isFallback } = call
    // Its observer is that of the steps beside it; what the step calls is observed beneath it.
    const options = { ...call.context, observer: undefined }
    const model = isFallback
      ? { ...afterStep(ensemble, call), isFallback }
      : observedStep(ensemble, call)
    const begun = { model, request, sink, options }
    const [to, context, observed] = observeRequest(observer, o.clock, begun)
    if (observed !== undefined) call.onObserved?.(observed)
    next(o, { ...call, context, ...(observed && { observed }) }, to)
  }
}

type ObservedCall = Pick<ModelCall, 'target' | 'step'> & {
  readonly context: Pick<ModelCall['context'], 'within'>
}

/** Says for observers what a step is. */
export function observedStep(
  ensemble: EnsemblePlan,
  { target, step, context: { within } }: ObservedCall,
): ObservedModel {
  return {
    name: target.config.name,
    version: target.version.version,
    isEnsemble: target.plan !== undefined,
    step,
    waitsFor: stepsBefore(ensemble, step),
    ...(within !== undefined && { within }),
  }
}

/** Says for observers what stands in for a step that has failed: it has waited for the step too. */
export function afterStep(ensemble: EnsemblePlan, call: ObservedCall): ObservedModel {
  return {
    ...observedStep(ensemble, call),
    waitsFor: [...stepsBefore(ensemble, call.step), call.step],
  }
}

/** Lists the names of the steps that a step waits for: for what it reads, or because it depends on them. */
function stepsBefore({ steps, tensors }: EnsemblePlan, name: string): readonly string[] {
  const step = steps.find((one) => one.name === name)
  if (step === undefined) return []
  const made = step.reads.flatMap((tensor) => tensors[tensor]?.step ?? [])
  const before = new Set([...made, ...step.dependsOn])
  return [...before].flatMap((index) => steps[index]?.name ?? [])
}
