import type { ModelTarget } from '@tutti/tensor'
import type { Replica, Work } from '@tutti/transport'
import type { CatalogVersion } from '../catalog/catalog.ts'

/** The revision of one model version that a request uses. */
export interface Pin {
  readonly version: CatalogVersion
  target: ModelTarget
  /** Key of the revision of `target`, by which replicas are found. */
  key: string
  /** Attempts that ran, may have run, or may still run under the revision. */
  uses: number
}

/** A replica at which one attempt has a place. */
export interface ChosenReplica {
  readonly pin: Pin
  readonly replica: Replica
  readonly work: Work
}

/** A replica at which a part of a graph has a place. */
export interface ChosenPart {
  /** Those of its models. */
  readonly pins: readonly Pin[]
  readonly replica: Replica
  readonly work: Work
  /** Key by which the times of the part are remembered. */
  readonly pin: { readonly key: string }
}
