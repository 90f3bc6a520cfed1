import type { IntOrString, JsonObject, KubeObject, LabelSelector } from '../object.ts'
import type { Resource } from '../resource.ts'

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
  readonly status?: {
    readonly observedGeneration?: number
    readonly currentReplicas?: number
    readonly desiredReplicas?: number
    readonly conditions?: readonly {
      readonly type: string
      readonly status: 'True' | 'False' | 'Unknown'
      readonly reason?: string
      readonly message?: string
      readonly lastTransitionTime?: string
    }[]
  }
}

export const HORIZONTAL_POD_AUTOSCALER: Resource<HorizontalPodAutoscaler> = {
  group: 'autoscaling',
  version: 'v2',
  plural: 'horizontalpodautoscalers',
  kind: 'HorizontalPodAutoscaler',
  namespaced: true,
}

export interface PodDisruptionBudget extends KubeObject {
  readonly spec: {
    readonly selector: LabelSelector
    readonly minAvailable?: IntOrString
    readonly maxUnavailable?: IntOrString
    readonly unhealthyPodEvictionPolicy?: 'IfHealthyBudget' | 'AlwaysAllow'
  }
  readonly status?: {
    readonly observedGeneration?: number
    readonly disruptionsAllowed?: number
    readonly currentHealthy?: number
    readonly desiredHealthy?: number
    readonly expectedPods?: number
  }
}

export const POD_DISRUPTION_BUDGET: Resource<PodDisruptionBudget> = {
  group: 'policy',
  version: 'v1',
  plural: 'poddisruptionbudgets',
  kind: 'PodDisruptionBudget',
  namespaced: true,
}
