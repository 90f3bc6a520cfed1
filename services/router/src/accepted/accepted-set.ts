import type { AcceptedEnsemble, AcceptedModel } from '@tutti/api'
import type { EnsembleSource } from '../catalog/ensemble-source.ts'

/** One accepted generation of a Model. */
export interface AcceptedModelRevision {
  /** Name of the ControllerRevision. */
  readonly name: string
  readonly accepted: AcceptedModel
}

/** The accepted generation of an Ensemble that counts. */
export interface AcceptedEnsembleRevision {
  /** Name of the ControllerRevision. */
  readonly name: string
  readonly accepted: AcceptedEnsemble
  /** The same object as long as the ControllerRevision is the same: plans are kept by that. */
  readonly source: EnsembleSource
}

/** The set that the operator has accepted, as a router is to serve it. Never changes. */
export interface AcceptedSet {
  /** By served name, all that there are of the Model, the newest last. */
  readonly models: ReadonlyMap<string, readonly AcceptedModelRevision[]>
  readonly ensembles: readonly AcceptedEnsembleRevision[]
}

export const NOTHING_ACCEPTED: AcceptedSet = { models: new Map(), ensembles: [] }
