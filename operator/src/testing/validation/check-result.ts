import type { KubeObject } from '@tutti/kube'
import type { EnsembleObject } from '../../api/kinds.ts'

/** The check result of one resource. The message of an accepted resource holds its warnings. */
export interface CheckResult {
  readonly reason: string
  readonly message: string
  /** Messages of all problems, if `message` does not hold them all. */
  readonly problems?: readonly string[]
}

/** The check results by kind and name, `Ensemble/name`. */
export type CheckResults = ReadonlyMap<string, CheckResult>

export const ACCEPTED: CheckResult = { reason: 'Accepted', message: '' }

/** Reads the result from the condition `Accepted` of a resource's newest generation; the reason is `none` if it is missing. */
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
