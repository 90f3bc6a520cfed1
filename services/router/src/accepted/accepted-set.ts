import type { SleepMark } from '@tutti/api'
import type { AcceptedEnsemble, AcceptedModel } from '@tutti/graph'
import type { EnsembleSource } from '../catalog/ensemble-source.ts'

/** One accepted generation of a Model. */
export interface AcceptedModelRevision {
  /** Name of the ControllerRevision. */
  readonly name: string
  readonly accepted: AcceptedModel
  /** Terms under which requests wait while the Model has no pods; absent if it should always have some. */
  readonly sleep?: SleepMark
}

/** The newest accepted generation of an Ensemble. */
export interface AcceptedEnsembleRevision {
  /** Name of the ControllerRevision. */
  readonly name: string
  readonly accepted: AcceptedEnsemble
  /**
   * Source of the ensemble. It stays the same object while the ControllerRevision does not change, because plans are kept by
   * its identity.
   */
  readonly source: EnsembleSource
}

/** The Models and Ensembles that the operator has accepted, for a router to serve. Immutable. */
export interface AcceptedSet {
  /** Accepted generations of each Model by served name, the newest last. */
  readonly models: ReadonlyMap<string, readonly AcceptedModelRevision[]>
  readonly ensembles: readonly AcceptedEnsembleRevision[]
}

export const NOTHING_ACCEPTED: AcceptedSet = { models: new Map(), ensembles: [] }
