import { ACCEPTED_LABEL } from '@tutti/api'
import {
  type AcceptedEnsemble,
  type AcceptedModel,
  parseAcceptedJson,
  toAcceptedJson,
} from '@tutti/graph'
import type { ControllerRevision, JsonObject, Stored } from '@tutti/kube'
import { digestOf, toCanonicalJson } from '../runtime/canonical.ts'
import { once } from './read-spec.ts'

/** Length of the part of a name that tells two accepted states of one resource apart. */
const DIGEST = 10

type Accepted = AcceptedModel | AcceptedEnsemble
export type Revision = Stored<ControllerRevision>

/** The content of a desired ControllerRevision. Its name holds a digest of the content. */
export interface WantedRevision {
  readonly name: string
  readonly data: JsonObject
}

export interface RevisionPlan {
  /** ControllerRevisions to create. */
  readonly create: readonly (WantedRevision & { readonly revision: number })[]
  /** Existing ControllerRevision that becomes the newest again, by this revision number. */
  readonly renew?: { readonly object: Revision; readonly revision: number }
}

/** Compares ControllerRevisions for a sort with the newest first. */
export function byRevision(one: ControllerRevision, other: ControllerRevision): number {
  return other.revision - one.revision
}

/**
 * Parses the accepted Model or Ensemble in a ControllerRevision; undefined if it cannot be parsed. Each object is parsed once.
 */
export const acceptedOf = once(({ data }: Revision): Accepted | undefined => {
  try {
    return parseAcceptedJson(data)
  } catch {
    // Written by a newer operator, or by hand; another one is made.
    return undefined
  }
})

/**
 * Builds the ControllerRevision of an accepted Model or Ensemble. Its keys are sorted as Go sorts them: otherwise Kubernetes
 * would refuse all patches of its metadata, also those of the garbage collector, because it compares the stored text.
 *
 * @param o.ignoresGeneration - true to give equal content of different generations the same name.
 */
export function toWanted(
  accepted: Accepted,
  o: { readonly ignoresGeneration: boolean },
): WantedRevision {
  const { name, uid } = accepted.resource
  const data: JsonObject = JSON.parse(toCanonicalJson(toAcceptedJson(accepted)))
  const content = o.ignoresGeneration ? { ...data, resource: { uid } } : data
  const digest = digestOf(content).slice(0, DIGEST)
  return { name: `${name}-${accepted.kind.toLowerCase()}-${digest}`, data }
}

/**
 * Plans how a wanted revision becomes the newest. Missing ones are created. If all exist, the newest of them gets the highest
 * revision number, unless it has it already. Pure.
 *
 * @param known - all ControllerRevisions of the owner.
 */
export function planNewestRevision(
  wanted: readonly WantedRevision[],
  known: readonly Revision[],
): RevisionPlan {
  const sorted = known.toSorted(byRevision)
  const [newest] = sorted
  const last = newest?.revision ?? 0
  const names = new Set(known.map(({ metadata }) => metadata.name))
  const create = wanted
    .filter(({ name }) => !names.has(name))
    .map((one, index) => ({ ...one, revision: last + 1 + index }))
  if (create.length > 0) return { create }
  const wantedNames = new Set(wanted.map(({ name }) => name))
  const object = sorted.find(({ metadata }) => wantedNames.has(metadata.name))
  const isNewest = object === undefined || object === newest
  return isNewest ? { create } : { create, renew: { object, revision: last + 1 } }
}

/**
 * True for a ControllerRevision of an earlier resource of this name that was deleted without its children (`--cascade=orphan`).
 * Routers use such a revision until it is deleted.
 */
export function isOrphanOf(
  { metadata: { labels = {}, ownerReferences = [] } }: Revision,
  kind: 'model' | 'ensemble',
  name: string,
): boolean {
  if (ownerReferences.length > 0) return false
  return labels[ACCEPTED_LABEL] === kind && labels[`tutti.dev/${kind}`] === name
}
