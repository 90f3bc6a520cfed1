import { type AcceptedEnsemble } from '@tutti/api'
import { type EnsemblePlan, planEnsemble } from '@tutti/ensemble'
import type { ModelConfig } from '@tutti/model-config'

/** A plan, and the configurations of the models that it runs. */
export interface FoundPlan {
  readonly plan: EnsemblePlan
  readonly modelOf: (name: string) => ModelConfig | undefined
}

/** Plans an accepted Ensemble with the configurations of models that it was checked against. */
export function planAccepted({
  config,
  rules,
  models,
}: Pick<AcceptedEnsemble, 'config' | 'rules' | 'models'>): FoundPlan {
  const byName = new Map(Object.entries(models))
  const lookup = (model: string) => {
    const found = byName.get(model)
    return found && { config: found, readyVersions: versionsOf(config, model) }
  }
  const plan = planEnsemble({ config, rules, lookup })
  return { plan, modelOf: (model) => byName.get(model) }
}

/** Lists the versions of a model that steps name. They are known, because an accepted Ensemble was checked against them. */
function versionsOf({ ensemble_scheduling }: ModelConfig, model: string): readonly number[] {
  const steps = ensemble_scheduling?.step ?? []
  const named = steps.filter((step) => step.model_name === model).map((step) => step.model_version)
  return [1, ...named.filter((version) => version !== -1)]
}
