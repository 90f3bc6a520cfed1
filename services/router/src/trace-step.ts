import type { ResponseSink, StepTraces } from '@tutti/tensor'
import type { ModelCall } from './model-call.ts'

/** How a step of a traced request is executed: its trace begins when it does. */
export function traceStep(
  traces: StepTraces,
  call: ModelCall,
  execute: (sink: ResponseSink, call: ModelCall) => void,
): (sink: ResponseSink) => void {
  const { target, request, context, step } = call
  const { config, version, plan } = target
  const model = {
    name: config.name,
    version: version.version,
    isEnsemble: plan !== undefined,
    step,
  }
  return (sink) => {
    const [traced, stepTraces] = traces.begin(model, request, sink)
    execute(traced, { ...call, context: { ...context, stepTraces } })
  }
}
