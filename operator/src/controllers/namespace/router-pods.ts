import type { Deployment, Pod } from '@tutti/kube'
import { isAlive } from '../../pods/pod-state.ts'
import { ROUTER_NAMES } from '../../resources/router-names.ts'
import { failureOfDeployment } from '../deployment-failure.ts'
import { type Failure, failureOfPod, toFailureText } from '../pod-failure.ts'
import type { RouterTrouble } from './router-states.ts'

/** Why a router has no pod, or not those that are wanted: none can be made, none can run. Pure. */
export function findPodTrouble(
  router: Deployment | undefined,
  pods: readonly Pod[],
): RouterTrouble | undefined {
  const isServed = (router?.status?.readyReplicas ?? 0) > 0
  const failures = pods
    .filter(isAlive)
    .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
    .map(failureOfPod)
  const failure = failures.find((one) => one !== undefined && !(isServed && isOnlyRestarted(one)))
  const found = failure ?? failureOfDeployment(router)
  if (found === undefined) return undefined
  const message = `Deployment "${ROUTER_NAMES.router}": ${toFailureText(found)}`
  return { reason: found.reason, message, ...(isServed && { isServed }) }
}

/** It ended, and Kubernetes starts it again at once. */
function isOnlyRestarted({ exitCode, reason }: Failure): boolean {
  return exitCode !== undefined && reason !== 'CrashLoopBackOff' && reason !== 'OOMKilled'
}
