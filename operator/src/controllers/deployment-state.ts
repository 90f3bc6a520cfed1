import { TEMPLATE_ANNOTATION } from '../resources/model-deployment.ts'
import type { DeploymentState } from './kept-objects.ts'

/** False while the Deployment's status is about an earlier spec of it. */
export function isObserved({ metadata, status }: DeploymentState): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 1)
}

/** The digest that the pods of a Deployment carry. */
export function templateOf({ spec }: DeploymentState): string | undefined {
  return spec.template.metadata?.annotations?.[TEMPLATE_ANNOTATION]
}

/** Pods of a Deployment, as its controller last counted them. */
export function numbersOf({ spec, status }: DeploymentState) {
  return {
    wanted: spec.replicas ?? 1,
    all: status?.replicas ?? 0,
    updated: status?.updatedReplicas ?? 0,
    available: status?.availableReplicas ?? 0,
  }
}

/** `2/3`: the ready of the wanted. */
export function toPodsReady(ready: number, wanted = 0): string {
  return `${ready}/${wanted}`
}
