import type { LastFailure } from '@tutti/api'
import type { DeploymentState } from './kept-objects.ts'

/** Pods that cannot even be made: a quota, or a policy of the namespace. */
export function failureOfDeployment(
  deployment: DeploymentState | undefined,
): Pick<LastFailure, 'reason' | 'message'> | undefined {
  const condition = deployment?.status?.conditions?.find(({ type }) => type === 'ReplicaFailure')
  if (condition?.status !== 'True') return undefined
  return { reason: condition.reason ?? 'FailedCreate', message: condition.message ?? '' }
}
