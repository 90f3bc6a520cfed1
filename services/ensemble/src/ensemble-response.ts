import { elementCount, type RequestContext } from '@tutti/tensor'
import type { EnsemblePlan } from './ensemble-plan.ts'
import type { RunAction, TensorEntry } from './ensemble-run.ts'
import type { Iteration } from './iteration.ts'
import type { RunGraph } from './run-graph.ts'
import { responseParameters } from './sequence-context.ts'
import { applyReshape, convertBatch } from './shape-conversion.ts'

/** What an ensemble answers with, once. */
export type EnsembleResponse = Pick<Extract<RunAction, { type: 'Emit' }>, 'outputs' | 'parameters'>

/**
 * Takes the requested outputs out of a complete iteration. Outputs that a step withheld are left out.
 *
 * @param actions - gets a RetainTensor for each output that a step still reads.
 */
export function ensembleResponse(
  o: {
    readonly plan: EnsemblePlan
    readonly graph: RunGraph
    readonly request: RequestContext
    readonly iteration: Iteration
  },
  actions: RunAction[],
): EnsembleResponse {
  const outputs = new Map<string, TensorEntry>()
  const isBatched = o.plan.maxBatchSize > 0
  let made: RequestContext | undefined
  for (const { name, tensor, dims, reshape } of o.graph.outputs) {
    const held = o.iteration.tensors[tensor]
    if (held === undefined) continue
    held.uses -= 1
    if (held.entry === null) continue
    const { ref, datatype } = held.entry
    if (held.uses > 0) actions.push({ type: 'RetainTensor', ref })
    const wanted = { dims: reshape ?? dims, isBatched }
    const inner = convertBatch(held.entry.shape, held.isBatched, wanted)
    const shape = reshape === undefined ? inner : applyReshape(inner, isBatched, reshape, dims)
    outputs.set(name, { ref, datatype, shape })
    // Triton puts no parameters on account of an output without bytes.
    if (elementCount(shape) > 0) made ??= held.context
  }
  return { outputs, parameters: responseParameters(o.request, made) }
}
