import type { ContainerStatus, PodSpec, PodStatus } from '../kinds/pod.ts'
import type { ObjectMeta } from '../object.ts'

/** A fault of a pod, in the words of Kubernetes. */
export interface Failure {
  /** One CamelCase word. */
  readonly reason: string
  readonly message: string
  readonly pod?: string | undefined
  readonly container?: string | undefined
  readonly exitCode?: number | undefined
}

/** The fields of a container's status that the search for a pod's failure reads. */
export type PodContainer = Pick<ContainerStatus, 'name' | 'ready' | 'state' | 'lastState'>

/** The fields of a pod that the search for its failure reads. */
export interface FailingPod {
  readonly metadata: Pick<ObjectMeta, 'name'> & { readonly uid?: string | undefined }
  readonly spec: Pick<PodSpec, 'nodeName' | 'readinessGates' | 'volumes'>
  readonly status?: Pick<PodStatus, 'phase' | 'reason' | 'message' | 'conditions'> & {
    readonly containerStatuses?: readonly PodContainer[]
    readonly initContainerStatuses?: readonly PodContainer[]
  }
}
