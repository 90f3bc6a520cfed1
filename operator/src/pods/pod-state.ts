import { isFetchContainer } from '@tutti/api'
import type { ContainerStatus, KubeObject, ObjectMeta, PodSpec, PodStatus } from '@tutti/kube'
import type { PodAddress } from './pod-client.ts'

/** The parts of a pod that caches keep. Labels and annotations are only those that the operator reads. */
export interface PodState extends KubeObject {
  readonly metadata: Omit<ObjectMeta, 'managedFields' | 'ownerReferences' | 'finalizers'>
  /** Spec whose `volumes` are only those of volume claims. */
  readonly spec: Pick<PodSpec, 'nodeName' | 'readinessGates' | 'volumes'>
  readonly status?: Pick<PodStatus, 'phase' | 'reason' | 'message' | 'podIP' | 'conditions'> & {
    readonly containerStatuses?: readonly CachedContainer[]
    readonly initContainerStatuses?: readonly CachedContainer[]
  }
}

/** The parts of a container's status that caches keep. */
export type CachedContainer = Pick<
  ContainerStatus,
  'name' | 'ready' | 'restartCount' | 'containerID' | 'state' | 'lastState'
>

/**
 * Returns the readiness gate of a Model in a pod; the operator opens it. All gates of a pod must be open before its Services and its
 * Deployment count it.
 *
 * @param model - metadata.name of the Model.
 */
export function acceptedGate(model: string): string {
  return `accepted.tutti.dev/${model}`
}

/** True for a pod that is neither being deleted nor has ended. */
export function isAlive(pod: PodState): boolean {
  const { phase } = pod.status ?? {}
  return pod.metadata.deletionTimestamp === undefined && phase !== 'Failed' && phase !== 'Succeeded'
}

/** True if a pod is alive and its condition Ready is True. */
export function isReady(pod: PodState): boolean {
  return isAlive(pod) && statusOf(pod, 'Ready') === 'True'
}

/** True if all containers of a pod are ready. Its readiness gates may still keep the pod unready. */
export function areContainersReady(pod: PodState): boolean {
  return isAlive(pod) && statusOf(pod, 'ContainersReady') === 'True'
}

export function statusOf(pod: PodState, type: string): string | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type)?.status
}

/** Returns the address of a pod; undefined before it has an IP. */
export function podAddressOf(pod: PodState): PodAddress | undefined {
  const ip = pod.status?.podIP
  const { namespace = '', name } = pod.metadata
  return ip === undefined || ip === '' ? undefined : { namespace, name, ip }
}

/** Returns the status of the container `main`, which serves; undefined before there is one. */
export function mainStatusOf(pod: PodState): CachedContainer | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === 'main')
}

/** True while the init container runs that fetches a model's files. */
export function isFetching(pod: PodState): boolean {
  return (pod.status?.initContainerStatuses ?? []).some(
    ({ name, state }) => isFetchContainer(name) && state?.running !== undefined,
  )
}
