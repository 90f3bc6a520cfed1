import type { Clock } from '@tutti/chassis'
import { isEnsembleConfig } from '@tutti/model-config'
import { observeRequest } from '@tutti/telemetry'
import type { RequestObserver } from '@tutti/tensor'
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
 * @param o.arrivedAt - time of the clock, in ms, when a client's request came.
 */
export function observeModel(
  model: ResolvedModel,
  observer: RequestObserver,
  o: { readonly clock: Pick<Clock, 'now'>; readonly arrivedAt?: number },
): ResolvedModel {
  const { name, version, config } = model
  const observed = { name, version, isEnsemble: isEnsembleConfig(config) }
  const { clock, ...arrival } = o
  return decorateModel(model, (request, sink, options) => {
    const begins = { model: observed, request, sink, options, ...arrival }
    model.execute(request, ...observeRequest(observer, clock, begins))
  })
}
