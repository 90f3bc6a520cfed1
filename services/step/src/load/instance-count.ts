import type { ModelConfig } from '@tutti/model-config'

/** Counts the instances that a normalised config asks for: the sum over its groups, per GPU where a group names GPUs. */
export function countInstances(config: ModelConfig): number {
  let total = 0
  for (const { count, gpus, kind } of config.instance_group) {
    total += count * (kind === 'KIND_GPU' ? gpus.length : 1)
  }
  return total
}
