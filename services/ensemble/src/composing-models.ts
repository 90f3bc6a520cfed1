import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { findDependencies } from './ensemble-order.ts'
import type { ComposingModel } from './ensemble-plan.ts'

export type LookupModel = (modelName: string) => ComposingModel | undefined

/**
 * Finds the completed config of every model that the ensemble composes.
 *
 * @returns by model name, in step order.
 * @throws ServeError ENSEMBLE_DEPENDENCY with Triton's text if one is absent, invalid or not loaded.
 * @see triton-semantics 1.3
 */
export function resolveComposingModels(
  config: ModelConfig,
  lookup: LookupModel,
): ReadonlyMap<string, ModelConfig> {
  const found = new Map<string, ComposingModel>()
  const missing: string[] = []
  for (const name of findDependencies(config)) {
    const model = lookup(name)
    if (model === undefined) missing.push(name)
    else found.set(name, model)
  }
  if (missing.length > 0) {
    // Triton keeps them in an ordered set.
    const names = missing.toSorted().join(', ')
    throw dependency(
      config,
      `ensemble ${config.name} contains models that are not available or ambiguous: ${names}`,
      names,
    )
  }
  const configs = new Map<string, ModelConfig>()
  for (const [name, model] of found) configs.set(name, usableConfig(config, name, model))
  return configs
}

function usableConfig(config: ModelConfig, name: string, model: ComposingModel): ModelConfig {
  const dependsOn = `ensemble '${config.name}' depends on '${name}'`
  if (model.configError !== undefined) {
    const cause = `Model '${name}' failed with error: ${model.configError}`
    throw dependency(config, `${dependsOn} which is not valid. ${cause}`, name)
  }
  if (model.config === undefined || model.readyVersions.length === 0) {
    const cause =
      model.versionError === undefined
        ? ''
        : ` Model '${name}' loading failed with error: ${model.versionError}`
    throw dependency(config, `${dependsOn} which has no loaded version.${cause}`, name)
  }
  for (const step of config.ensemble_scheduling?.step ?? []) {
    const version = step.model_version
    if (step.model_name !== name || version === -1 || model.readyVersions.includes(version)) {
      continue
    }
    throw dependency(config, `${dependsOn} whose required version ${version} is not loaded.`, name)
  }
  return model.config
}

function dependency(config: ModelConfig, message: string, model: string): ServeError {
  return new ServeError('ENSEMBLE_DEPENDENCY', message, {
    details: { ensemble: config.name, model },
  })
}
