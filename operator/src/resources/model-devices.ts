import { DEFAULT_DEVICE } from '@tutti/api'
import type { PodSpec, ResourceRequirements } from '@tutti/kube'
import { toPlain } from './plain.ts'
import type { PodGroup } from './pod-group.ts'

/** The devices that pods ask for. */
export interface ModelDevices {
  /** The devices of the process, RESOURCE=COUNT. */
  readonly accelerator: string
  readonly resources: Pick<ResourceRequirements, 'limits' | 'claims'>
  /** Claims of the pod that `resources` names. */
  readonly resourceClaims?: PodSpec['resourceClaims']
}

/**
 * Returns the devices that a pod of a group requests: those of the host. Without `accelerator`, a pod with instances on a GPU gets one
 * default device. A pod with claims asks for nothing else, and its process takes what they give.
 *
 * @returns undefined if the pod needs no device.
 */
export function devicesOf({
  spec: { accelerator },
  models,
}: Pick<PodGroup, 'spec' | 'models'>): ModelDevices | undefined {
  const isOnGpu = models.some(({ spec }) => spec.instances?.kind === 'KIND_GPU')
  if (accelerator === undefined && !isOnGpu) return undefined
  const { resourceName = DEFAULT_DEVICE, count = 1, claims } = accelerator ?? {}
  if (claims === undefined) {
    // A text, as the server writes quantities: then it can be seen that it is there.
    const limits = { [resourceName]: String(count) }
    return { accelerator: `${resourceName}=${count}`, resources: { limits } }
  }
  return {
    accelerator: `${DEFAULT_DEVICE}=all`,
    resources: { claims: claims.map(({ name }) => ({ name })) },
    resourceClaims: claims.map((claim) => toPlain(claim)),
  }
}
