import type { EnsemblePlan } from '@tutti/ensemble'
import type { ResponseSink, StepTraces } from '@tutti/tensor'
import type { ModelCall } from './model-call.ts'

interface TracedStep {
  readonly traces: StepTraces
  readonly call: ModelCall
  /** Whose step it is. */
  readonly ensemble: EnsemblePlan
}

/** How a step of a traced request is executed: its trace begins when it does. */
export function traceStep(
  { traces, call, ensemble }: TracedStep,
  execute: (sink: ResponseSink, call: ModelCall) => void,
): (sink: ResponseSink) => void {
  const { target, request, context, step } = call
  const { config, version, plan } = target
  const model = {
    name: config.name,
    version: version.version,
    isEnsemble: plan !== undefined,
    step,
    waitsFor: stepsBefore(ensemble, step),
  }
  return (sink) => {
    const [traced, stepTraces] = traces.begin(model, request, sink)
    execute(traced, { ...call, context: { ...context, stepTraces } })
  }
}

/** The names of the steps that a step waits for: for what it reads, or because it depends on them. */
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
