import type { IntOrString, JsonObject, KubeObject, LabelSelector } from '../object.ts'
import { defineResource } from '../resource.ts'

export interface HorizontalPodAutoscaler extends KubeObject {
  readonly spec: {
    readonly scaleTargetRef: {
      readonly apiVersion: string
      readonly kind: string
      readonly name: string
    }
    readonly minReplicas?: number
    readonly maxReplicas: number
    /** autoscaling/v2 MetricSpec. */
    readonly metrics?: readonly JsonObject[]
    readonly behavior?: JsonObject
  }
}

export const HORIZONTAL_POD_AUTOSCALER = defineResource<HorizontalPodAutoscaler>(
  'autoscaling/v2',
  'horizontalpodautoscalers',
  'HorizontalPodAutoscaler',
)

export interface PodDisruptionBudget extends KubeObject {
  readonly spec: {
    readonly selector: LabelSelector
    readonly minAvailable?: IntOrString
    readonly maxUnavailable?: IntOrString
    readonly unhealthyPodEvictionPolicy?: 'IfHealthyBudget' | 'AlwaysAllow'
  }
}

export const POD_DISRUPTION_BUDGET = defineResource<PodDisruptionBudget>(
  'policy/v1',
  'poddisruptionbudgets',
  'PodDisruptionBudget',
)
