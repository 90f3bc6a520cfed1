import { ServeError } from '@tutti/errors'
import type { EnsembleStep, ModelConfig } from '@tutti/model-config'
import { findDependencies } from './ensemble-order.ts'
import type { ComposingModel } from './ensemble-plan.ts'

export type LookupModel = (modelName: string) => ComposingModel | undefined

/** Finds the completed configuration of the model version that a step runs; returns undefined if it is not known. */
export type ConfigOfStep = (step: EnsembleStep) => ModelConfig | undefined

/** Makes a lookup by model name, for models whose versions all have the same configuration. */
export function configByName(models: ReadonlyMap<string, ModelConfig>): ConfigOfStep {
  return ({ model_name }) => models.get(model_name)
}

/**
 * Finds the completed configuration of every model that the ensemble composes.
 *
 * @throws ServeError ENSEMBLE_DEPENDENCY with Triton's text if a model is absent, invalid or not loaded.
 * @see triton-semantics 1.3
 */
export function resolveComposingModels(config: ModelConfig, lookup: LookupModel): ConfigOfStep {
  const found = findDependencies(config).map((name) => ({ name, model: lookup(name) }))
  const missing = found.flatMap(({ name, model }) => (model === undefined ? name : []))
  if (missing.length > 0) {
    // Triton keeps them in an ordered set.
    const names = missing.toSorted().join(', ')
    const text = `ensemble ${config.name} contains models that are not available or ambiguous: ${names}`
    throw dependency(config, text, names)
  }
  const models = new Map(found.map(({ name, model }) => [name, model]))
  const latest = new Map(
    found.flatMap(({ name, model }) => (model ? [[name, usableConfig(config, name, model)]] : [])),
  )
  return ({ model_name: name, model_version: version }) =>
    models.get(name)?.configs?.get(version) ?? latest.get(name)
}

function usableConfig(config: ModelConfig, name: string, model: ComposingModel): ModelConfig {
  const steps = config.ensemble_scheduling?.step ?? []
  const absent = steps.find(
    ({ model_name: other, model_version: version }) =>
      other === name && version !== -1 && !model.readyVersions.includes(version),
  )
  let problem: string
  if (model.configError !== undefined) {
    problem = `which is not valid. Model '${name}' failed with error: ${model.configError}`
  } else if (model.config === undefined || model.readyVersions.length === 0) {
    const cause = ` Model '${name}' loading failed with error: ${model.versionError}`
    problem = `which has no loaded version.${model.versionError === undefined ? '' : cause}`
  } else if (absent !== undefined) {
    problem = `whose required version ${absent.model_version} is not loaded.`
  } else return model.config
  throw dependency(config, `ensemble '${config.name}' depends on '${name}' ${problem}`, name)
}

function dependency(config: ModelConfig, message: string, model: string): ServeError {
  return new ServeError('ENSEMBLE_DEPENDENCY', message, {
    details: { ensemble: config.name, model },
  })
}
