import type { ModelConfig } from '@tutti/model-config'
import { type Graph, tensorName } from './graph.ts'

/** Prints a graph as the `ensemble_scheduling` that clients get, as far as config.pbtxt has words for it. */
export function printScheduling(graph: Graph): NonNullable<ModelConfig['ensemble_scheduling']> {
  return {
    step: graph.steps.map(({ model, version, inputs, outputs }) => ({
      model_name: model,
      model_version: version,
      input_map: toMap(inputs.map(({ name, from }) => [name, tensorName(graph, from)])),
      output_map: toMap(outputs.map(({ name, tensor }) => [name, tensor])),
      model_namespace: '',
    })),
    max_inflight_requests: graph.maxInFlightPerStep,
  }
}

function toMap(entries: readonly (readonly [string, string])[]): Readonly<Record<string, string>> {
  return Object.fromEntries(entries)
}
