import type {
  V1PodDisruptionBudgetSpec,
  V2HorizontalPodAutoscalerSpec,
} from '@kubernetes/client-node'
import type { JsonObject, KubeObject } from '../object.ts'
import { defineResource } from '../resource.ts'
import type { Wire } from './wire.ts'

export interface HorizontalPodAutoscaler extends KubeObject {
  readonly spec: Omit<Wire<V2HorizontalPodAutoscalerSpec>, 'metrics' | 'behavior'> & {
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
  readonly spec: Wire<V1PodDisruptionBudgetSpec>
}

export const POD_DISRUPTION_BUDGET = defineResource<PodDisruptionBudget>(
  'policy/v1',
  'poddisruptionbudgets',
  'PodDisruptionBudget',
)
