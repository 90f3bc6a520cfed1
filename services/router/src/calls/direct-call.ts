import { ServeError } from '@tutti/errors'
import { checkInferRequest } from '@tutti/model-config'
import type { ResponseSink } from '@tutti/tensor'
import type { ModelCall } from './model-call.ts'
import type { RequestDependencies } from './request-dependencies.ts'
import { callModel } from './retried-call.ts'

/**
 * Calls the model that a request is for. Where models are in other processes the request is checked before it travels, so that
 * what is refused is refused with the text and code of one process. Never throws.
 */
export function callDirectly(
  o: RequestDependencies,
  call: Omit<ModelCall, 'ensemble' | 'step'>,
  sink: ResponseSink,
): void {
  const { config, entry, version } = call.target
  try {
    if (o.replicas.areRemote === true) checkInferRequest(config, call.request)
  } catch (error) {
    const details = { model: entry.name, version: String(version.version) }
    return sink.fail(ServeError.from(error).withDetails(details), 'no')
  }
  callModel(o, { ...call, ensemble: '', step: '' }, sink)
}
