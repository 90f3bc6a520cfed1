import type { ModelSpec } from '@tutti/api'
import type { InstanceGroup, ModelConfig } from '@tutti/model-config'

/** The fields of a Model about where its instances run, for the instance groups of a configuration. */
export interface ImportedDevices {
  readonly spec: Pick<ModelSpec, 'accelerator' | 'instances'>
  /** The instance groups that the Model gives, where they are not those of the configuration. */
  readonly groups: readonly InstanceGroup[]
}

/**
 * Plans the devices of a Model whose configuration wants GPUs. In Triton, `gpus` are numbers of a machine, and `count` instances run
 * on each of them. A pod has devices of its own, which it counts from 0: it gets as many as there are numbers, or one where there are
 * none, which stands for each GPU of a machine.
 *
 * @param o.forCpu - a machine without GPUs: as many instances run on the CPU.
 */
export function importDevices(
  { instance_group: groups }: ModelConfig,
  o: { readonly forCpu: boolean },
): ImportedDevices {
  const [first] = groups
  if (first === undefined || !groups.some(wantsGpus)) return { spec: {}, groups }
  if (o.forCpu) {
    const count = groups.reduce((sum, group) => sum + countOf(group), 0)
    return replaced(first, { count, kind: 'KIND_CPU' })
  }
  const ids = new Set(groups.flatMap(({ gpus }) => gpus))
  const highest = Math.max(-1, ...ids)
  if (highest < ids.size) return { spec: { accelerator: { count: Math.max(1, ids.size) } }, groups }
  // Several groups have numbers of their own, which only their own configuration can say.
  if (groups.length > 1) return { spec: { accelerator: { count: highest + 1 } }, groups }
  const { spec, groups: instead } = replaced(first, { count: countOf(first), kind: 'KIND_GPU' })
  return { spec: { accelerator: { count: ids.size }, ...spec }, groups: instead }
}

function wantsGpus({ kind, gpus }: InstanceGroup): boolean {
  return kind === 'KIND_GPU' || (kind === 'KIND_AUTO' && gpus.length > 0)
}

/** Counts the instances of a group, of which there is one if it says nothing. */
function countOf({ count }: InstanceGroup): number {
  return Math.max(1, count)
}

function replaced(
  group: InstanceGroup,
  instances: NonNullable<ModelSpec['instances']> & Pick<InstanceGroup, 'kind'>,
): ImportedDevices {
  const bare = { gpus: [], profile: [], secondary_devices: [] }
  return { spec: { instances }, groups: [{ ...group, ...bare, ...instances }] }
}
