import type { Condition, ContainerStatus, Pod } from '@tutti/kube'
import type { PodAddress } from './pod-client.ts'

/** What a pod must say before its Service and its Deployment count it; the operator says it. */
export const ACCEPTED_GATE = 'tutti.dev/accepted'

/** True for a pod that is neither being deleted nor has ended. */
export function isAlive(pod: Pod): boolean {
  const { phase } = pod.status ?? {}
  return pod.metadata.deletionTimestamp === undefined && phase !== 'Failed' && phase !== 'Succeeded'
}

/** True if a pod takes requests, as Kubernetes sees it. */
export function isReady(pod: Pod): boolean {
  return isAlive(pod) && statusOf(pod, 'Ready') === 'True'
}

/** True if all containers of a pod are ready; its readiness gates may still be open. */
export function areContainersReady(pod: Pod): boolean {
  return isAlive(pod) && statusOf(pod, 'ContainersReady') === 'True'
}

export function statusOf(pod: Pod, type: string): Condition['status'] | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type)?.status
}

/** Where a pod is asked; undefined before it has an address. */
export function addressOf(pod: Pod): PodAddress | undefined {
  const ip = pod.status?.podIP
  const { namespace = '', name } = pod.metadata
  return ip === undefined || ip === '' ? undefined : { namespace, name, ip }
}

/** The container that serves. */
export function mainStatusOf(pod: Pod): ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === 'main')
}
