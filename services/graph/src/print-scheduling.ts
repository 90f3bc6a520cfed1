import type { ModelConfig } from '@tutti/model-config'
import { type Graph, tensorName, tensorsOf } from './graph.ts'

/**
 * Prints a graph as the `ensemble_scheduling` that clients get, as far as config.pbtxt has words for it: constants are left out, and of
 * several tensors of which the first counts it names one.
 */
export function printScheduling(graph: Graph): NonNullable<ModelConfig['ensemble_scheduling']> {
  return {
    step: graph.steps.map(({ model, builtin, version, inputs, outputs }) => ({
      model_name: builtin === undefined ? model : `builtin:${builtin.name}`,
      model_version: version,
      input_map: toMap(
        inputs.flatMap(({ name, from }) =>
          tensorsOf(from)
            .slice(0, 1)
            .map((tensor): [string, string] => [name, tensorName(graph, tensor)]),
        ),
      ),
      output_map: toMap(outputs.map(({ name, tensor }) => [name, tensor])),
      model_namespace: '',
    })),
    max_inflight_requests: graph.maxInFlightPerStep,
  }
}

function toMap(entries: readonly (readonly [string, string])[]): Readonly<Record<string, string>> {
  return Object.fromEntries(entries)
}
