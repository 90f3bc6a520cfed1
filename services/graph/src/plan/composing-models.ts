import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import type { ConfigOfStep } from '../check/find-tensor-faults.ts'
import { calleesOf, type Graph, type GraphStep, modelsOf } from '../graph.ts'
import type { ComposingModel } from './ensemble-plan.ts'

export type LookupModel = (modelName: string) => ComposingModel | undefined

/** The models that an ensemble composes. */
export interface ComposingModels {
  readonly configOf: ConfigOfStep
  /** Lists the outputs that responses of a step may lack because steps of its own ensemble were skipped. */
  readonly optionalOutputsOf: (step: GraphStep) => readonly string[]
}

/**
 * Finds the completed configuration of every model that the ensemble composes.
 *
 * @throws ServeError ENSEMBLE_DEPENDENCY with Triton's text if a model is absent, invalid or not loaded.
 * @see triton-semantics 1.3
 */
export function resolveComposingModels(
  config: Pick<ModelConfig, 'name'>,
  graph: Graph,
  lookup: LookupModel,
): ComposingModels {
  const found = modelsOf(graph).map((name) => ({ name, model: lookup(name) }))
  const missing = found.flatMap(({ name, model }) => (model === undefined ? name : []))
  if (missing.length > 0) {
    // Triton keeps them in an ordered set.
    const names = missing.toSorted().join(', ')
    const text = `ensemble ${config.name} contains models that are not available or ambiguous: ${names}`
    throw dependency(config, text, names)
  }
  const models = new Map(found.map(({ name, model }) => [name, model]))
  const latest = new Map(
    found.flatMap(({ name, model }) =>
      model ? [[name, usableConfig({ config, graph }, name, model)]] : [],
    ),
  )
  return {
    configOf: ({ model: name, version }) =>
      models.get(name)?.configs?.get(version) ?? latest.get(name),
    optionalOutputsOf: (step) =>
      calleesOf({ steps: [step] }).flatMap(({ model }) => models.get(model)?.optionalOutputs ?? []),
  }
}

function usableConfig(
  { config, graph }: { readonly config: Pick<ModelConfig, 'name'>; readonly graph: Graph },
  name: string,
  model: ComposingModel,
): ModelConfig {
  const absent = calleesOf(graph).find(
    ({ model: other, version }) =>
      other === name && version !== -1 && !model.readyVersions.includes(version),
  )
  let problem: string
  if (model.configError !== undefined) {
    problem = `which is not valid. Model '${name}' failed with error: ${model.configError}`
  } else if (model.config === undefined || model.readyVersions.length === 0) {
    const cause = ` Model '${name}' loading failed with error: ${model.versionError}`
    problem = `which has no loaded version.${model.versionError === undefined ? '' : cause}`
  } else if (absent !== undefined) {
    problem = `whose required version ${absent.version} is not loaded.`
  } else return model.config
  throw dependency(config, `ensemble '${config.name}' depends on '${name}' ${problem}`, name)
}

function dependency(config: Pick<ModelConfig, 'name'>, message: string, model: string): ServeError {
  return new ServeError('ENSEMBLE_DEPENDENCY', message, {
    details: { ensemble: config.name, model },
  })
}
