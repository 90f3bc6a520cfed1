import type {
  IntOrString,
  JsonObject,
  KubeObject,
  LabelSelector,
  StatusCondition,
} from '../object.ts'
import { defineResource } from '../resource.ts'
import type { PodTemplate } from './pod.ts'

export interface Deployment extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    /** Can never be changed. */
    readonly selector: LabelSelector
    readonly template: PodTemplate
    readonly strategy?: {
      readonly type?: 'RollingUpdate'
      readonly rollingUpdate?: {
        readonly maxSurge?: IntOrString
        readonly maxUnavailable?: IntOrString
      }
    }
    readonly progressDeadlineSeconds?: number
    readonly revisionHistoryLimit?: number
    readonly paused?: boolean
  }
  readonly status?: {
    readonly observedGeneration?: number
    readonly replicas?: number
    readonly updatedReplicas?: number
    readonly readyReplicas?: number
    readonly availableReplicas?: number
    readonly conditions?: readonly StatusCondition[]
  }
}

export const DEPLOYMENT = defineResource<Deployment>('apps/v1', 'deployments', 'Deployment')

/** A state that was, as data that can never be changed. */
export interface ControllerRevision extends KubeObject {
  readonly data?: JsonObject
  readonly revision: number
}

export const CONTROLLER_REVISION = defineResource<ControllerRevision>(
  'apps/v1',
  'controllerrevisions',
  'ControllerRevision',
)
