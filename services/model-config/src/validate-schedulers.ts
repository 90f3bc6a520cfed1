import type { DynamicBatching, ModelConfig, SequenceBatching } from './model-config.ts'
import { sequenceControlFault } from './sequence-controls.ts'

/** The first entry of `sizes` that is no batch size of the model. */
function preferredSizeFault(
  sizes: readonly number[],
  maxBatchSize: number,
  what: string,
): string | undefined {
  for (const size of sizes) {
    if (size <= 0) return `${what} must be positive`
    if (size > maxBatchSize) return `${what} must be <= max batch size`
  }
  return undefined
}

function priorityFault(batching: DynamicBatching): string | undefined {
  const levels = batching.priority_levels
  if (levels === 0) return undefined
  const isLevel = (level: number) => level >= 1 && level <= levels
  if (!isLevel(batching.default_priority_level)) {
    return `default priority level must be in range [1, ${levels}]`
  }
  return Object.keys(batching.priority_queue_policy).every((key) => isLevel(Number(key)))
    ? undefined
    : `priority queue policy must have priority level in range [1, ${levels}]`
}

/** Measured on 2.51: DELAY together with preserve_ordering loads, whatever the sources say (triton-semantics 9.16). */
function orderingFault(batching: DynamicBatching): string | undefined {
  return batching.preserve_ordering && batching.priority_levels > 1
    ? "Only one priority level is allowed when 'preserve_ordering' is true"
    : undefined
}

/** The first rule that `dynamic_batching` breaks, without the model's name. */
export function dynamicBatchingFault(
  batching: DynamicBatching,
  maxBatchSize: number,
): string | undefined {
  return (
    preferredSizeFault(
      batching.preferred_batch_size,
      maxBatchSize,
      'dynamic batching preferred size',
    ) ??
    priorityFault(batching) ??
    orderingFault(batching)
  )
}

function strategyFault(batching: SequenceBatching, maxBatchSize: number): string | undefined {
  const { oldest, direct } = batching
  if (oldest !== undefined) {
    return preferredSizeFault(
      oldest.preferred_batch_size,
      maxBatchSize,
      'sequence batching preferred batch size',
    )
  }
  if (direct === undefined) return undefined
  // Zero is the default, and passes although the text excludes it.
  return direct.minimum_slot_utilization >= 0 && direct.minimum_slot_utilization <= 1
    ? undefined
    : 'sequence batching minimum slot utilization must be in range (0.0, 1.0]'
}

/** The first rule that the scheduler of a config breaks, as Triton's text. */
export function schedulerFault(config: ModelConfig): string | undefined {
  const { dynamic_batching, sequence_batching, max_batch_size, name } = config
  if (dynamic_batching !== undefined) {
    const fault = dynamicBatchingFault(dynamic_batching, max_batch_size)
    return fault === undefined ? undefined : `${fault} for ${name}`
  }
  if (sequence_batching === undefined) return undefined
  if (config.response_cache?.enable === true) {
    return `Response Cache does not currently support model ${name} with sequence batching scheduler. Please disable the response cache.`
  }
  const controls = sequenceControlFault(sequence_batching, name)
  if (controls !== undefined) return controls
  const strategy = strategyFault(sequence_batching, max_batch_size)
  return strategy === undefined ? undefined : `${strategy} for ${name}`
}
