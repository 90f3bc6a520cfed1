import type { ContainerStatus, PodSpec, PodStatus } from '../kinds/pod.ts'
import type { ObjectMeta } from '../object.ts'

/** What went wrong. */
export interface Failure {
  /** One CamelCase word. */
  readonly reason: string
  readonly message: string
  readonly pod?: string | undefined
  readonly container?: string | undefined
  readonly exitCode?: number | undefined
}

/** What is read of a container. */
export type PodContainer = Pick<ContainerStatus, 'name' | 'ready' | 'state' | 'lastState'>

/** What is read of a pod. */
export interface FailingPod {
  readonly metadata: Pick<ObjectMeta, 'name'> & { readonly uid?: string | undefined }
  readonly spec: Pick<PodSpec, 'nodeName' | 'readinessGates' | 'volumes'>
  readonly status?: Pick<PodStatus, 'phase' | 'reason' | 'message' | 'conditions'> & {
    readonly containerStatuses?: readonly PodContainer[]
    readonly initContainerStatuses?: readonly PodContainer[]
  }
}
