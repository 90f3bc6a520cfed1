import { ENSEMBLE_CONDITIONS, type EnsembleStatus, type Signature } from '@tutti/api'
import { toConditions } from '../../runtime/conditions.ts'
import {
  conditionsOfEnsemble,
  type EnsembleState,
  type NewestRevision,
} from './ensemble-conditions.ts'

export interface SummaryInput {
  readonly state: EnsembleState
  /** The name by which clients call the Ensemble. */
  readonly modelName: string
  /** Accepted revisions, newest first. */
  readonly revisions: readonly NewestRevision[]
  /** Signature of the served generation; undefined if there is none. */
  readonly signature: Signature | undefined
  readonly urls: { readonly url: string; readonly grpcUrl: string }
  /** Status before this one. */
  readonly before: EnsembleStatus | undefined
  /** Time now, RFC 3339 in whole seconds. */
  readonly at: string
}

/** Builds the whole status of an Ensemble. Equal facts give an equal status, whatever the time. Pure. */
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
