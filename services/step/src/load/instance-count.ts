import type { ModelConfig } from '@tutti/model-config'

/** Counts the instances that a normalised config asks for: the sum over its groups, per GPU where a group names GPUs. */
export function countInstances(config: ModelConfig): number {
  let total = 0
  for (const { count, gpus, kind } of config.instance_group) {
    total += count * (kind === 'KIND_GPU' ? gpus.length : 1)
  }
  return total
}

/** Requests of a normalised config that can execute at the same time: one per instance, or a full batch where a batcher makes them. */
export function countSlots(config: ModelConfig): number {
  const batch = config.dynamic_batching === undefined ? 1 : Math.max(1, config.max_batch_size)
  return countInstances(config) * batch
}
