import type { EnsembleStep, ModelConfig } from '@tutti/model-config'
import { type ConfigDraft, modelConfig } from '@tutti/model-config/testing'
import type { EnsemblePlan } from '../plan/ensemble-plan.ts'
import { planEnsemble } from '../plan/plan-ensemble.ts'
import { readConfigGraph } from '../read/read-config.ts'

export { modelConfig } from '@tutti/model-config/testing'

/** An ensemble's config; `steps` become its scheduling. */
export function ensembleConfig(
  draft: ConfigDraft & { readonly steps?: readonly EnsembleStep[]; readonly maxInflight?: number },
): ModelConfig {
  const { steps = [], maxInflight = 0, ...config } = draft
  return modelConfig({
    name: 'ensemble',
    platform: 'ensemble',
    backend: '',
    ensemble_scheduling: { step: steps, max_inflight_requests: maxInflight },
    ...config,
  })
}

/** A step of the latest version of a model. */
export function stepConfig(
  model: string,
  inputMap: Readonly<Record<string, string>>,
  outputMap: Readonly<Record<string, string>>,
  version = -1,
): EnsembleStep {
  return {
    model_name: model,
    model_version: version,
    input_map: inputMap,
    output_map: outputMap,
    model_namespace: '',
  }
}

/**
 * Plans an ensemble E of models whose inputs and outputs are just what the steps map.
 *
 * @param ports.input - a name that ends in `?` is optional.
 * @param streams - the models that are decoupled.
 */
export function ensemblePlan(
  ports: { readonly input: readonly string[]; readonly output: readonly string[] },
  steps: readonly EnsembleStep[],
  streams: readonly string[] = [],
): EnsemblePlan {
  const config = ensembleConfig({
    name: 'E',
    input: ports.input.map((name) => ({ name, optional: name.endsWith('?') })),
    output: ports.output.map((name) => ({ name })),
    steps,
  })
  return planEnsemble({
    config,
    graph: readConfigGraph(config),
    lookup: (name) => {
      const step = steps.find((s) => s.model_name === name)
      const model = modelConfig({
        name,
        input: Object.keys(step?.input_map ?? {}).map((input) => ({ name: input })),
        output: Object.keys(step?.output_map ?? {}).map((output) => ({ name: output })),
        model_transaction_policy: { decoupled: streams.includes(name) },
      })
      return { config: model, readyVersions: [1] }
    },
  })
}
