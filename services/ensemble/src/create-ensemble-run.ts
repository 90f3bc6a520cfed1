import type { RequestContext } from '@tutti/tensor'
import type { EnsemblePlan } from './ensemble-plan.ts'
import type { EnsembleRun } from './ensemble-run.ts'
import { GraphRun } from './graph-run.ts'
import { runGraph } from './run-graph.ts'

/**
 * Makes the state machine of one ensemble request.
 *
 * @param o.requestedOutputs - empty means all.
 * @throws ServeError INVALID_REQUEST if a requested output is none of the ensemble's.
 */
export function createEnsembleRun(
  plan: EnsemblePlan,
  o: { readonly context: RequestContext; readonly requestedOutputs: readonly string[] },
): EnsembleRun {
  return new GraphRun(plan, runGraph(plan, o.requestedOutputs), o.context)
}
