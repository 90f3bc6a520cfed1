import type { LastFailure } from '@tutti/api'
import type { DeploymentState } from './kept-objects.ts'

/** Finds why a Deployment cannot create pods, because of a quota or a policy say; undefined if it can. */
export function failureOfDeployment(
  deployment: DeploymentState | undefined,
): Pick<LastFailure, 'reason' | 'message'> | undefined {
  const condition = deployment?.status?.conditions?.find(({ type }) => type === 'ReplicaFailure')
  if (condition?.status !== 'True') return undefined
  return { reason: condition.reason ?? 'FailedCreate', message: condition.message ?? '' }
}
