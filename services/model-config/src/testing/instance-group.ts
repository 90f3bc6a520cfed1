import type { InstanceGroup } from '../model/model-config.ts'

/** An instance group `g` as normalisation leaves it, one instance on the CPU; `rest` replaces what is to be different. */
export function instanceGroup(rest: Partial<InstanceGroup> = {}): InstanceGroup {
  return {
    name: 'g',
    kind: 'KIND_CPU',
    count: 1,
    gpus: [],
    secondary_devices: [],
    profile: [],
    passive: false,
    host_policy: '',
    ...rest,
  }
}
