import type { Deployment } from '@tutti/kube'
import { failureOfDeployment } from '../deployment-failure.ts'
import type { RouterTrouble } from './router-states.ts'

/** Why a router has no pod, where Kubernetes may make none: a quota, or a policy of the namespace. Pure. */
export function findPodTrouble(router: Deployment | undefined): RouterTrouble | undefined {
  // What serves is not in trouble because more of it cannot be made.
  if ((router?.status?.readyReplicas ?? 0) > 0) return undefined
  return failureOfDeployment(router)
}
