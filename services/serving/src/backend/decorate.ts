import type { InferenceBackend, ResolvedModel } from './inference-backend.ts'

/** A model that is executed otherwise. */
export function decorateModel(
  model: ResolvedModel,
  execute: ResolvedModel['execute'],
): ResolvedModel {
  const { name, version, config, isDecoupled } = model
  return { name, version, config, isDecoupled, labels: (output) => model.labels(output), execute }
}

/** A backend whose models are decorated; everything else is its own. */
export function decorateModels(
  backend: InferenceBackend,
  decorate: (model: ResolvedModel) => ResolvedModel['execute'],
): InferenceBackend {
  const resolve: InferenceBackend['resolve'] = (asked, askedVersion) => {
    const model = backend.resolve(asked, askedVersion)
    return decorateModel(model, decorate(model))
  }
  // Backends are classes with private members, which a copy would lose.
  return new Proxy(backend, {
    get: (target, key) => {
      if (key === 'resolve') return resolve
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
