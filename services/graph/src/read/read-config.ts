import type { EnsembleStep, ModelConfig } from '@tutti/model-config'
import type { Graph, GraphStep, TensorSource } from '../graph.ts'

/**
 * Reads the graph of an ensemble's config.pbtxt. What a step writes onto the name of an ensemble input is a tensor of its own:
 * steps that read the name get the request's value, and the ensemble output of the name is what the step wrote (triton-semantics
 * 9.3 accepts such graphs without saying more).
 *
 * @param config - also one that breaks rules. A configuration without `ensemble_scheduling` has no steps.
 */
export function readConfigGraph(config: ModelConfig): Graph {
  const { step: steps = [], max_inflight_requests: maxInFlightPerStep = 0 } =
    config.ensemble_scheduling ?? {}
  const names = new TensorSources(config, steps)
  return {
    steps: steps.map((step, index): GraphStep => {
      return {
        name: stepName(step, index, steps),
        model: step.model_name,
        version: step.model_version,
        inputs: Object.entries(step.input_map).map(([name, tensor]) => {
          return { name, from: names.read(tensor) }
        }),
        outputs: Object.entries(step.output_map).map(([name, tensor]) => ({ name, tensor })),
        after: [],
      }
    }),
    outputs: config.output.map(({ name }) => ({ name, from: names.written(name) })),
    maxInFlightPerStep,
  }
}

/** Finds the tensors of a config.pbtxt by their names. */
class TensorSources {
  readonly #inputs: ReadonlySet<string>
  readonly #made = new Map<string, TensorSource>()

  constructor({ input }: ModelConfig, steps: readonly EnsembleStep[]) {
    this.#inputs = new Set(input.map(({ name }) => name))
    for (const [step, { output_map: map }] of steps.entries()) {
      for (const [output, tensor] of Object.entries(map)) {
        if (!this.#made.has(tensor)) this.#made.set(tensor, { kind: 'made', step, output })
      }
    }
  }

  /** Finds what a step gets that reads a name. */
  read(name: string): TensorSource {
    return this.#inputs.has(name) ? { kind: 'input', name } : this.written(name)
  }

  /** Finds what a step wrote onto a name; the ensemble input itself if no step did. */
  written(name: string): TensorSource {
    const made = this.#made.get(name)
    if (made !== undefined) return made
    return { kind: this.#inputs.has(name) ? 'input' : 'unknown', name }
  }
}

/** Names a step by its model, with its index if several steps run the model. */
function stepName(
  { model_name: model }: EnsembleStep,
  index: number,
  steps: readonly EnsembleStep[],
): string {
  const isOnly = steps.filter((one) => one.model_name === model).length === 1
  return isOnly ? model : `${model}#${index}`
}
