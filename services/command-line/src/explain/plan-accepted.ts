import { type AcceptedEnsemble, calleesOf, type EnsemblePlan, planEnsemble } from '@tutti/graph'
import type { ModelConfig } from '@tutti/model-config'

/** A plan, and the configurations of the models that it runs. */
export interface FoundPlan {
  readonly plan: EnsemblePlan
  readonly modelOf: (name: string) => ModelConfig | undefined
}

/** Plans an accepted Ensemble with the configurations of models that it was checked against. */
export function planAccepted({
  config,
  graph,
  models,
  optionalOutputs = {},
}: Pick<AcceptedEnsemble, 'config' | 'graph' | 'models' | 'optionalOutputs'>): FoundPlan {
  const byName = new Map(Object.entries(models))
  // The versions that steps name are known: the Ensemble was checked against them.
  const readyVersions = [1, ...calleesOf(graph).map(({ version }) => version)]
  const lookup = (model: string) => {
    const found = byName.get(model)
    const optional = optionalOutputs[model] ?? []
    return found && { config: found, readyVersions, optionalOutputs: optional }
  }
  return { plan: planEnsemble({ config, graph, lookup }), modelOf: (model) => byName.get(model) }
}
