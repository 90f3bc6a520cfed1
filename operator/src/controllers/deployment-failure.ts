import type { LastFailure } from '@tutti/ensemble'
import type { Deployment } from '@tutti/kube'

/** Pods that cannot even be made: a quota, or a policy of the namespace. */
export function failureOfDeployment(
  deployment: Deployment | undefined,
): Pick<LastFailure, 'reason' | 'message'> | undefined {
  const condition = deployment?.status?.conditions?.find(({ type }) => type === 'ReplicaFailure')
  if (condition?.status !== 'True') return undefined
  return { reason: condition.reason ?? 'FailedCreate', message: condition.message ?? '' }
}
