import type { InstanceGroup, ModelConfig } from '@tutti/model-config'

/**
 * Counts the instances that a model asks for: the sum over its groups, per GPU where a group names GPUs.
 * A group without a count has one instance; two on onnxruntime without a GPU, as in Triton.
 */
export function countInstances(config: ModelConfig): number {
  if (config.instance_group.length === 0) return defaultCount(config, 'KIND_AUTO')
  let total = 0
  for (const group of config.instance_group) {
    const count = group.count > 0 ? group.count : defaultCount(config, group.kind)
    total += count * (group.kind === 'KIND_GPU' ? Math.max(1, group.gpus.length) : 1)
  }
  return total
}

function defaultCount(config: ModelConfig, kind: InstanceGroup['kind']): number {
  const isCpu = kind === 'KIND_CPU' || kind === 'KIND_AUTO'
  return isCpu && config.backend === 'onnxruntime' ? 2 : 1
}
