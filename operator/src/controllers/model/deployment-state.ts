import type { Deployment } from '@tutti/kube'
import { TEMPLATE_ANNOTATION } from '../../resources/model-deployment.ts'

/** False while the Deployment's status is about an earlier spec of it. */
export function isObserved({ metadata, status }: Deployment): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 1)
}

/** The digest that the pods of a Deployment carry. */
export function templateOf({ spec }: Deployment): string | undefined {
  return spec.template.metadata?.annotations?.[TEMPLATE_ANNOTATION]
}

/** Pods of a Deployment, as its controller last counted them. */
export function numbersOf({ spec, status }: Deployment) {
  return {
    wanted: spec.replicas ?? 1,
    all: status?.replicas ?? 0,
    updated: status?.updatedReplicas ?? 0,
    available: status?.availableReplicas ?? 0,
  }
}
