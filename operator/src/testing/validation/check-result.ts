import type { KubeObject } from '@tutti/kube'
import type { EnsembleObject } from '../../api/kinds.ts'

/** The result of one resource; an accepted one's message has its warnings. */
export interface CheckResult {
  readonly reason: string
  readonly message: string
  /** The messages of all problems, where more are told than in `message`. */
  readonly problems?: readonly string[]
}

/** By `Ensemble/name`. */
export type CheckResults = ReadonlyMap<string, CheckResult>

export const ACCEPTED: CheckResult = { reason: 'Accepted', message: '' }

/** Reads what the condition `Accepted` says of a resource's newest generation. */
export function resultOf({
  metadata,
  status,
}: Pick<KubeObject, 'metadata'> & Pick<EnsembleObject, 'status'>): CheckResult {
  const condition = status?.conditions?.find(({ type }) => type === 'Accepted')
  if (condition === undefined || condition.observedGeneration !== metadata.generation) {
    return { reason: 'none', message: 'the condition Accepted is not there yet' }
  }
  const { reason, message } = condition
  // Where it is stored is no part of the result.
  return reason === ACCEPTED.reason ? ACCEPTED : { reason, message }
}
