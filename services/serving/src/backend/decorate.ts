import type { Clock } from '@tutti/chassis'
import { isEnsembleConfig } from '@tutti/model-config'
import { observeRequest } from '@tutti/telemetry'
import type { ObservedCall, RequestObserver } from '@tutti/tensor'
import type { ResolvedModel } from './inference-backend.ts'

/** Copies a model with another `execute`. */
export function decorateModel(
  model: ResolvedModel,
  execute: ResolvedModel['execute'],
): ResolvedModel {
  const { name, version, config, isDecoupled } = model
  return { name, version, config, isDecoupled, labels: (output) => model.labels(output), execute }
}

/**
 * Wraps a model so that `observer` hears of its requests.
 *
 * @param o.client - how a client's request came in.
 */
export function observeModel(
  model: ResolvedModel,
  observer: RequestObserver,
  o: { readonly clock: Pick<Clock, 'now'> } & Pick<ObservedCall, 'client'>,
): ResolvedModel {
  const { name, version, config } = model
  const observed = { name, version, isEnsemble: isEnsembleConfig(config) }
  const { clock, client } = o
  return decorateModel(model, (request, sink, options) => {
    const begins = { model: observed, request, sink, options, ...(client && { client }) }
    const [to, given] = observeRequest(observer, clock, begins)
    model.execute(request, to, given)
  })
}
