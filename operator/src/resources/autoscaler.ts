import type { ModelSpec } from '@tutti/api'
import { type Desired, HORIZONTAL_POD_AUTOSCALER, type HorizontalPodAutoscaler } from '@tutti/kube'
import { type DesiredChild, desiredChild } from '../runtime/children.ts'
import type { Scaling } from './model-scaling.ts'
import { toPlain } from './plain.ts'
import type { ServingMetadata } from './serving-children.ts'

/** The fields of a `scaling` that an HPA takes as they are. */
export type AutoscalerFields = Pick<NonNullable<ModelSpec['scaling']>, 'metrics' | 'behavior'>

/**
 * Builds the HPA of the Deployment of the same name; an empty list if it is scaled otherwise. It comes after the Deployment, whose
 * replicas it takes over. Pure.
 */
export function buildAutoscaler(
  { metadata }: Pick<ServingMetadata, 'metadata'>,
  scaling: Scaling,
  { metrics = [], behavior }: AutoscalerFields,
): readonly DesiredChild[] {
  if (scaling.provider !== 'HPA') return []
  const autoscaler: Desired<HorizontalPodAutoscaler> = {
    metadata,
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: metadata.name },
      minReplicas: scaling.min,
      maxReplicas: scaling.max,
      metrics: metrics.map((metric) => ({ ...toPlain(metric) })),
      ...(behavior !== undefined && { behavior: { ...toPlain(behavior) } }),
    },
  }
  return [desiredChild(HORIZONTAL_POD_AUTOSCALER, autoscaler)]
}
