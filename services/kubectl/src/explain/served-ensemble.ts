import { conditionOf } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import { type AcceptedEnsemble, parseAcceptedJson } from '@tutti/graph'
import type { ControllerRevision, Stored } from '@tutti/kube'
import type { EnsembleObject } from '../resources.ts'
import type { Cause } from '../status/tree.ts'

/** The accepted state of an Ensemble that routers serve. */
export interface ServedEnsemble {
  /** Name of the ControllerRevision. */
  readonly revision: string
  readonly accepted: AcceptedEnsemble
}

/** The written generation of an Ensemble, with the reason for which routers do not serve it. */
export interface UnservedGeneration extends Cause {
  readonly generation: number
}

/**
 * Finds the accepted state of an Ensemble that routers serve: the newest one that can be read. Pure.
 *
 * @returns undefined if the Ensemble has no accepted state.
 * @throws ServeError MALFORMED_MESSAGE if it has accepted states, but none can be read.
 */
export function servedOf(
  { metadata: { uid } }: Stored<EnsembleObject>,
  revisions: readonly Stored<ControllerRevision>[],
): ServedEnsemble | undefined {
  const own = revisions
    .filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid) === true)
    .toSorted((one, other) => other.revision - one.revision)
  let unreadable: ServeError | undefined
  for (const { metadata, data } of own) {
    try {
      const accepted = parseAcceptedJson(data)
      if (accepted.kind === 'Ensemble') return { revision: metadata.name, accepted }
    } catch (error) {
      // An operator of another release wrote it. Routers leave it out, too.
      unreadable ??= ServeError.from(error)
    }
  }
  if (unreadable !== undefined) throw unreadable
  return undefined
}

/** Finds the reason for which routers do not serve the Ensemble as it is written; undefined if they serve it. Pure. */
export function unservedOf({
  metadata: { generation = 0 },
  status,
}: Stored<EnsembleObject>): UnservedGeneration | undefined {
  const accepted = conditionOf(status, 'Accepted')
  if (accepted === undefined || (accepted.observedGeneration ?? 0) < generation) {
    return { generation, reason: 'NotObserved', message: 'the operator has not looked at it yet' }
  }
  const { status: is, reason, message } = accepted
  return is === 'True' ? undefined : { generation, reason, message }
}
