import { ServeError } from '@tutti/errors'
import type { Graph } from '../graph.ts'
import type { PlanStep } from './ensemble-plan.ts'

/**
 * Checks that no step waits for the end of a decoupled step. Every other step either runs before the decoupled one, or runs for
 * each of its responses, and the decoupled step may have to wait for the latter.
 *
 * @param ensemble - its name.
 * @param steps - those of the graph.
 * @throws ServeError ENSEMBLE_INVALID
 */
export function checkDependencies(
  ensemble: string,
  graph: Graph,
  steps: readonly Pick<PlanStep, 'decoupled'>[],
): void {
  const nameOf = (step: number): string => graph.steps[step]?.name ?? ''
  for (const [index, { after }] of graph.steps.entries()) {
    const decoupled = after.find((step) => steps[step]?.decoupled)
    if (decoupled === undefined) continue
    const text = `in ensemble ${ensemble}, step '${nameOf(index)}' depends on '${nameOf(decoupled)}', whose model is decoupled: what follows it runs for each of its responses and cannot wait for the last`
    throw new ServeError('ENSEMBLE_INVALID', text, { details: { ensemble, step: nameOf(index) } })
  }
}
