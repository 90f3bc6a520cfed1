import {
  ACCEPTED_LABEL,
  type AcceptedEnsemble,
  type AcceptedModel,
  parseAcceptedJson,
  toAcceptedJson,
} from '@tutti/api'
import type { ControllerRevision, JsonObject, Stored } from '@tutti/kube'
import { digestOf, toCanonicalJson } from '../runtime/canonical.ts'
import { once } from './read-spec.ts'

/** Length of the part of a name that tells two accepted states of one resource apart. */
const DIGEST = 10

type Accepted = AcceptedModel | AcceptedEnsemble
export type Revision = Stored<ControllerRevision>

/** Content that is to be a ControllerRevision; by name, as the name follows from the content. */
export interface WantedRevision {
  readonly name: string
  readonly data: JsonObject
}

export interface RevisionPlan {
  /** To be made. */
  readonly create: readonly (WantedRevision & { readonly revision: number })[]
  /** Made before: it counts as the newest again, with this number. */
  readonly renew?: { readonly object: Revision; readonly revision: number }
}

/** The newest first. */
export function byRevision(one: ControllerRevision, other: ControllerRevision): number {
  return other.revision - one.revision
}

/** Reads what a ControllerRevision of ours holds; undefined if it cannot be read. */
export const acceptedOf = once(({ data }: Revision): Accepted | undefined => {
  try {
    return parseAcceptedJson(data)
  } catch {
    // Written by a newer operator, or by hand; another one is made.
    return undefined
  }
})

/**
 * The ControllerRevision of an accepted Model or Ensemble. Kubernetes keeps its text, and refuses patches of its metadata, also those of the garbage
 * collector, unless reading and writing it again gives the same text: keys are in the order of Go.
 *
 * @param o.ignoresGeneration - the same content of a later generation is the same.
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
 * Plans what makes one of `wanted` the newest: those that are not there are made; if all are, the newest of them counts anew. Pure.
 *
 * @param known - all of the owner.
 */
export function planAccepted(
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
 * True for what was accepted of an earlier resource of that name, which was deleted without its children
 * (`--cascade=orphan`). Routers go on with it until it is deleted.
 */
export function isOrphanOf(
  { metadata: { labels = {}, ownerReferences = [] } }: Revision,
  kind: 'model' | 'ensemble',
  name: string,
): boolean {
  if (ownerReferences.length > 0) return false
  return labels[ACCEPTED_LABEL] === kind && labels[`tutti.dev/${kind}`] === name
}
