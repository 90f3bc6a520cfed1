import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { type Graph, readsOf, tensorsOf } from '../graph.ts'
import { findFieldFaults } from './find-field-faults.ts'
import { findStructureFaults } from './find-structure-faults.ts'
import { structureText } from './triton-texts.ts'

/**
 * Checks the rules that an ensemble can break by itself, without a look at its models. A configuration that is no ensemble passes.
 *
 * @param graph - of the ensemble, which may be one that config.pbtxt has no words for.
 * @throws ServeError ENSEMBLE_INVALID with Triton's text for the first broken rule, in Triton's order.
 * @see triton-semantics 1.1
 */
export function validateGraph(config: ModelConfig, graph: Graph): void {
  const [field] = findFieldFaults(config)
  if (field !== undefined) throw invalid(config, ...field)
  if (config.ensemble_scheduling === undefined) return
  const [fault] = findStructureFaults(config, graph)
  if (fault === undefined && !hasUnknownSource(graph)) return
  throw invalid(config, structureText(config, graph, fault))
}

function hasUnknownSource({ steps, outputs }: Graph): boolean {
  const tensors = [...steps.flatMap(readsOf), ...outputs.flatMap(({ from }) => tensorsOf(from))]
  return tensors.some(({ kind }) => kind === 'unknown')
}

function invalid({ name }: ModelConfig, text: string, field?: string): ServeError {
  const details = { ensemble: name, ...(field !== undefined && { field }) }
  return new ServeError('ENSEMBLE_INVALID', text, { details })
}
