import type { ContainerStatus, KubeObject, ObjectMeta, PodSpec, PodStatus } from '@tutti/kube'
import type { PodAddress } from './pod-client.ts'

/** The parts of a pod that are read, and kept in caches: of its labels and annotations, too, only those that the operator reads. */
export interface PodState extends KubeObject {
  readonly metadata: Omit<ObjectMeta, 'managedFields' | 'ownerReferences' | 'finalizers'>
  /** `volumes` has only those of claims. */
  readonly spec: Pick<PodSpec, 'nodeName' | 'readinessGates' | 'volumes'>
  readonly status?: Pick<PodStatus, 'phase' | 'reason' | 'message' | 'podIP' | 'conditions'> & {
    readonly containerStatuses?: readonly PodContainer[]
    readonly initContainerStatuses?: readonly PodContainer[]
  }
}

/** The parts of a container's status that are read: whether it runs, and how it ended. */
export type PodContainer = Pick<
  ContainerStatus,
  'name' | 'ready' | 'restartCount' | 'containerID' | 'state' | 'lastState'
>

/** The readiness gate that must be open before the Service and the Deployment of a pod count it; the operator opens it. */
export const ACCEPTED_GATE = 'tutti.dev/accepted'

/** True for a pod that is neither being deleted nor has ended. */
export function isAlive(pod: PodState): boolean {
  const { phase } = pod.status ?? {}
  return pod.metadata.deletionTimestamp === undefined && phase !== 'Failed' && phase !== 'Succeeded'
}

/** True if a pod takes requests, as Kubernetes sees it. */
export function isReady(pod: PodState): boolean {
  return isAlive(pod) && statusOf(pod, 'Ready') === 'True'
}

/** True if all containers of a pod are ready; its readiness gates may still be open. */
export function areContainersReady(pod: PodState): boolean {
  return isAlive(pod) && statusOf(pod, 'ContainersReady') === 'True'
}

export function statusOf(pod: PodState, type: string): string | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type)?.status
}

/** Where a pod is asked; undefined before it has an address. */
export function addressOf(pod: PodState): PodAddress | undefined {
  const ip = pod.status?.podIP
  const { namespace = '', name } = pod.metadata
  return ip === undefined || ip === '' ? undefined : { namespace, name, ip }
}

/** The container that serves. */
export function mainStatusOf(pod: PodState): PodContainer | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === 'main')
}
