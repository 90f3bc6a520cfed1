import type { EnsemblePlan } from '@tutti/graph'
import { observeRequest } from '@tutti/telemetry'
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
    const { target, request, step } = call
    // Its observer is that of the steps beside it; what the step calls is observed beneath it.
    const options = { ...call.context, observer: undefined }
    const { config, version, plan } = target
    const model = {
      name: config.name,
      version: version.version,
      isEnsemble: plan !== undefined,
      step,
      waitsFor: stepsBefore(ensemble, step),
    }
    const [to, context] = observeRequest(observer, o.clock, { model, request, sink, options })
    next(o, { ...call, context }, to)
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
