import { KubeError } from '@tutti/kube'
import { ACCEPTED_LABEL, acceptedOf, byRevision, type Revision } from './accepted-revisions.ts'

/** Of those that a message names. */
const MOST_NAMES = 5

/**
 * Of what an earlier owner left behind, what routers do not use: they go on with its newest, and with what pods serve. Nothing
 * where it is not plain whose they are: of two owners before, or of one that cannot be read. Pure.
 *
 * @param findUnused - the same as of an owner's own, with no history to keep.
 */
export function unusedOfLeft(
  left: readonly Revision[],
  findUnused: (revisions: readonly Revision[], history: number) => readonly Revision[],
): readonly Revision[] {
  const owners = new Set(left.map(ownerTextOf))
  if (owners.size !== 1 || owners.has(undefined)) return []
  const sorted = left.toSorted(byRevision)
  const unused = new Set(findUnused(sorted, 0))
  return sorted.slice(1).filter((one) => unused.has(one))
}

function ownerTextOf(revision: Revision): string | undefined {
  const accepted = acceptedOf(revision)
  return accepted && `${accepted.kind} ${accepted.resource.uid} ${accepted.modelName}`
}

/** True for what was accepted of a resource that was deleted without its children, or that somebody took its owner from. */
export function isLeft({ metadata: { labels = {}, ownerReferences = [] } }: Revision): boolean {
  return ownerReferences.length === 0 && labels[ACCEPTED_LABEL] !== undefined
}

/**
 * What a quota said, with what may be deleted: only a person knows whether something is to be served still whose resource is gone.
 *
 * @param left - of the namespace.
 */
export function withAdvice(refusal: KubeError, left: readonly Revision[]): KubeError {
  if (left.length === 0) return refusal
  const names = left.map(({ metadata }) => `"${metadata.name}"`).toSorted()
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : ''
  const { status, reason, causes, retryAfterMs } = refusal
  return new KubeError({
    status,
    reason,
    causes,
    message: `${refusal.message}; ControllerRevisions without an owner count too, delete those of which nothing is to be served any more: ${names.slice(0, MOST_NAMES).join(', ')}${more}`,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    cause: refusal,
  })
}
