import type { RequestContext } from '@tutti/tensor'
import type { EnsemblePlan } from './ensemble-plan.ts'
import type { EnsembleRun } from './ensemble-run.ts'
import { GraphRun } from './graph-run.ts'
import { runGraph } from './run-graph.ts'

/** Of one step, the first included: enough for a replica that goes and one that was about to. */
export const STEP_ATTEMPTS = 3
/** Enough for a stream whose consumers keep up; memory of one request stays bounded where they do not. */
const DEFAULT_MAX_OPEN_ITERATIONS = 1024

export interface EnsembleRunOptions {
  readonly context: RequestContext
  /** Empty means all. */
  readonly requestedOutputs: readonly string[]
  /** Attempts at one execution of a step, the first included. Default 3. */
  readonly maxAttempts?: number
  /** Bound of the responses of decoupled steps that the steps after them have not finished with. Default 1024. */
  readonly maxOpenIterations?: number
}

/**
 * Makes the state machine of one ensemble request.
 *
 * @throws ServeError INVALID_REQUEST if a requested output is none of the ensemble's.
 */
export function createEnsembleRun(plan: EnsemblePlan, o: EnsembleRunOptions): EnsembleRun {
  return new GraphRun(plan, runGraph(plan, o.requestedOutputs), {
    context: o.context,
    maxAttempts: o.maxAttempts ?? STEP_ATTEMPTS,
    maxOpenIterations: o.maxOpenIterations ?? DEFAULT_MAX_OPEN_ITERATIONS,
  })
}
