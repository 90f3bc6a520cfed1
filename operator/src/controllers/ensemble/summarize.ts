import { ENSEMBLE_CONDITIONS, type EnsembleStatus, type Signature } from '@tutti/api'
import { toConditions } from '../../runtime/conditions.ts'
import {
  conditionsOfEnsemble,
  type EnsembleState,
  type ServedRevision,
} from './ensemble-conditions.ts'

export interface SummaryInput {
  readonly state: EnsembleState
  /** The name by which clients call the Ensemble. */
  readonly modelName: string
  /** Accepted, the newest first. */
  readonly revisions: readonly ServedRevision[]
  /** The signature of the served generation. */
  readonly signature: Signature | undefined
  readonly urls: { readonly url: string; readonly grpcUrl: string }
  /** The status as it is. */
  readonly before: EnsembleStatus | undefined
  /** RFC 3339. */
  readonly at: string
}

/** The whole status of an Ensemble: nothing in it changes as long as nothing has happened. Pure. */
export function summarizeEnsemble(o: SummaryInput): EnsembleStatus {
  const { state, before, at } = o
  const { generation, steps, served } = state
  return {
    observedGeneration: generation,
    conditions: toConditions(ENSEMBLE_CONDITIONS, {
      states: conditionsOfEnsemble(state),
      before: before?.conditions,
      observedGeneration: generation,
      at,
    }),
    modelName: o.modelName,
    steps: steps.map((step) => ({ ...step })),
    stepsReady: `${steps.filter(({ ready }) => ready).length}/${steps.length}`,
    // Before a revision is served, clients have nothing to call there.
    ...(served !== undefined && { ...o.urls, revision: served.name }),
    ...(served !== undefined && o.signature !== undefined && { signature: o.signature }),
    revisions: o.revisions.map((revision) => ({ ...revision })),
  }
}
