import type { Clock } from '@tutti/chassis'
import type { EnsemblePlan } from '@tutti/graph'
import { observeRequest } from '@tutti/telemetry'
import type { RequestObserver, ResponseSink } from '@tutti/tensor'
import type { ModelCall } from './model-call.ts'

interface ObservedStep {
  readonly observer: RequestObserver
  readonly clock: Clock
  readonly call: ModelCall
  /** Plan of the ensemble that has the step. */
  readonly ensemble: EnsemblePlan
}

/** Observes the execution of a step. It counts from its begin, not while it waits for a place. */
export function observeStep(
  { observer, clock, call, ensemble }: ObservedStep,
  execute: (sink: ResponseSink, call: ModelCall) => void,
): (sink: ResponseSink) => void {
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
  return (sink) => {
    const [to, context] = observeRequest(observer, clock, { model, request, sink, options })
    execute(to, { ...call, context })
  }
}

/** Lists the names of the steps that a step waits for: for what it reads, or because it depends on them. */
function stepsBefore(
  { steps, tensors }: EnsemblePlan,
  name: string | undefined,
): readonly string[] {
  const step = steps.find((one) => one.name === name)
  if (step === undefined) return []
  const made = step.reads.flatMap((tensor) => tensors[tensor]?.step ?? [])
  const before = new Set([...made, ...step.dependsOn])
  return [...before].flatMap((index) => steps[index]?.name ?? [])
}
