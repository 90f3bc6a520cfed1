import { TEMPLATE_ANNOTATION } from '../resources/step-template.ts'
import type { DeploymentState } from './kept-objects.ts'

/** True if the status of a Deployment is about its newest spec. */
export function isObserved({ metadata, status }: DeploymentState): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 1)
}

/** Returns the digest of a Deployment's pod template, which its pods carry as annotation. */
export function templateOf({ spec }: DeploymentState): string | undefined {
  return spec.template.metadata?.annotations?.[TEMPLATE_ANNOTATION]
}

/** Returns the wanted number of a Deployment's pods, and the numbers that its controller counted last. */
export function podCountsOf({ spec, status }: DeploymentState) {
  return {
    wanted: spec.replicas ?? 1,
    all: status?.replicas ?? 0,
    updated: status?.updatedReplicas ?? 0,
    available: status?.availableReplicas ?? 0,
  }
}

/** Writes ready and wanted pods as `2/3`. */
export function toPodsReady(ready: number, wanted = 0): string {
  return `${ready}/${wanted}`
}
