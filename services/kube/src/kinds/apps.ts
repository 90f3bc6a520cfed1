import type { IntOrString, JsonObject, KubeObject, LabelSelector } from '../object.ts'
import type { Resource } from '../resource.ts'
import type { PodTemplate } from './pod.ts'

export interface Deployment extends KubeObject {
  readonly spec: DeploymentSpec
  readonly status?: DeploymentStatus
}

export interface DeploymentSpec {
  readonly replicas?: number
  /** Can never be changed. */
  readonly selector: LabelSelector
  readonly template: PodTemplate
  readonly strategy?: {
    readonly type?: 'RollingUpdate' | 'Recreate'
    readonly rollingUpdate?: {
      readonly maxSurge?: IntOrString
      readonly maxUnavailable?: IntOrString
    }
  }
  readonly minReadySeconds?: number
  readonly progressDeadlineSeconds?: number
  readonly revisionHistoryLimit?: number
  readonly paused?: boolean
}

export interface DeploymentStatus {
  readonly observedGeneration?: number
  readonly replicas?: number
  readonly updatedReplicas?: number
  readonly readyReplicas?: number
  readonly availableReplicas?: number
  readonly unavailableReplicas?: number
  readonly conditions?: readonly DeploymentCondition[]
}

export interface DeploymentCondition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason?: string
  readonly message?: string
  readonly lastUpdateTime?: string
  readonly lastTransitionTime?: string
}

export const DEPLOYMENT: Resource<Deployment> = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
}

/** A state that was, as data that can never be changed. */
export interface ControllerRevision extends KubeObject {
  readonly data?: JsonObject
  readonly revision: number
}

export const CONTROLLER_REVISION: Resource<ControllerRevision> = {
  group: 'apps',
  version: 'v1',
  plural: 'controllerrevisions',
  kind: 'ControllerRevision',
  namespaced: true,
}
