import { systemClock } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import { STEPS_OF_FAILURES, STEPS_PARAMETER } from '@tutti/protocol'
import { StepSpans, withoutInner } from '@tutti/telemetry'
import { EMPTY_CONTEXT, type ResponseSink, type StepResponse } from '@tutti/tensor'
import { observeModel } from '../backend/decorate.ts'
import { DecoratedBackend } from '../backend/decorated-backend.ts'
import type { InferenceBackend } from '../backend/inference-backend.ts'

export { STEPS_HEADER } from '@tutti/protocol'

/**
 * Wraps the backend of a call whose answers have the steps' times. Other calls pay nothing for it.
 *
 * @param asked - value of STEPS_HEADER.
 */
export function tellSteps(
  backend: InferenceBackend,
  asked: string | readonly string[],
): InferenceBackend {
  // Such a caller may not know what models call inside, but sees the graph of its ensemble.
  const isHidden = backend.identity !== undefined
  return new DecoratedBackend(backend, (model) => (request, sink, o) => {
    const spans = new StepSpans(systemClock)
    let index = 0
    const sendLast = (response: StepResponse, error?: ServeError): void => {
      const recorded = spans.read()
      const told = isHidden ? withoutInner(recorded) : recorded
      const failure = error && { error: { reason: error.reason, message: error.message } }
      const value = JSON.stringify({ ...told, ...failure })
      const parameter = [STEPS_PARAMETER, { kind: 'string', value }] as const
      sink.send({ ...response, parameters: new Map([...response.parameters, parameter]) })
    }
    const to: ResponseSink = {
      send: (response) => {
        if (response.final) return sendLast(response)
        index = response.index + 1
        sink.send(response)
      },
      fail: (error, ...rest) => {
        if (asked !== STEPS_OF_FAILURES || spans.read().spans.length === 0) {
          return sink.fail(error, ...rest)
        }
        sendLast({ index, final: true, outputs: [], parameters: EMPTY_CONTEXT.parameters }, error)
      },
      ready: () => sink.ready?.(),
    }
    observeModel(model, spans, { clock: systemClock }).execute(request, to, o)
  })
}
