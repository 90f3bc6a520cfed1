import type { Placement } from './placement.ts'

/** The CPUs of instances, by the name of their host policy: tritonserver's `--host-policy`. */
export type HostPolicies = ReadonlyMap<string, readonly number[]>

/** Finds the name of an instance's host policy: as its group says, or as Triton calls those of its kind. */
export function policyName({ policy, kind, deviceId }: Placement): string {
  if (policy !== '') return policy
  return kind === 'GPU' ? `gpu_${deviceId}` : kind.toLowerCase()
}
