import { DEFAULT_DEVICE, type ModelSpec } from '@tutti/api'
import type { PodSpec, ResourceRequirements } from '@tutti/kube'
import { toPlain } from './plain.ts'

/** The devices that a Model's pods ask for. */
export interface ModelDevices {
  /** The devices of the process, RESOURCE=COUNT. */
  readonly accelerator: string
  readonly resources: Pick<ResourceRequirements, 'limits' | 'claims'>
  /** Claims of the pod that `resources` names. */
  readonly resourceClaims?: PodSpec['resourceClaims']
}

/**
 * Returns the devices that a Model's pod requests. Without `accelerator`, instances on a GPU get one default device. A pod with claims
 * asks for nothing else, and its process takes what they give.
 *
 * @returns undefined if the Model needs no device.
 */
export function devicesOf({ accelerator, instances }: ModelSpec): ModelDevices | undefined {
  if (accelerator === undefined && instances?.kind !== 'KIND_GPU') return undefined
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
