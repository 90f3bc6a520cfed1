import { systemClock } from '@tutti/chassis'
import { STEPS_PARAMETER } from '@tutti/protocol'
import { StepSpans, withoutInner } from '@tutti/telemetry'
import type { StepResponse } from '@tutti/tensor'
import { observeModel } from '../backend/decorate.ts'
import { DecoratedBackend } from '../backend/decorated-backend.ts'
import type { InferenceBackend } from '../backend/inference-backend.ts'

export { STEPS_HEADER } from '@tutti/protocol'

/** Wraps the backend of a call whose answers have the steps' times. Other calls pay nothing for it. */
export function tellSteps(backend: InferenceBackend): InferenceBackend {
  // Such a caller may not know what models call inside, but sees the graph of its ensemble.
  const isHidden = backend.identity !== undefined
  return new DecoratedBackend(backend, (model) => (request, sink, o) => {
    const spans = new StepSpans(systemClock)
    const withSteps = (response: StepResponse): StepResponse => {
      const recorded = spans.read()
      const value = JSON.stringify(isHidden ? withoutInner(recorded) : recorded)
      const told = [STEPS_PARAMETER, { kind: 'string', value }] as const
      return { ...response, parameters: new Map([...response.parameters, told]) }
    }
    const to = {
      send: (response: StepResponse) => sink.send(response.final ? withSteps(response) : response),
      fail: sink.fail.bind(sink),
      ready: () => sink.ready?.(),
    }
    observeModel(model, spans, { clock: systemClock }).execute(request, to, o)
  })
}
