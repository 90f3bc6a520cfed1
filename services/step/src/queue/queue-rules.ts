import type { DynamicBatching, ModelConfig, QueuePolicy } from '@tutti/model-config'
import type { BatchingRules } from './batch-plan.ts'

/** The queue policy of one priority level. */
export interface QueueRules {
  readonly timeoutAction: 'REJECT' | 'DELAY'
  /** 0 is none. */
  readonly defaultTimeoutUs: number
  readonly allowTimeoutOverride: boolean
  /** 0 leaves the bound to the server. */
  readonly maxQueueSize: number
}

/** A model's `dynamic_batching`, compiled: what the queue reads for every request. */
export interface DynamicRules {
  readonly batching: BatchingRules
  /** 0 without levels; then everything is level 0. */
  readonly levels: number
  readonly defaultLevel: number
  readonly defaultLevelRules: QueueRules
  readonly levelRules: ReadonlyMap<number, QueueRules>
  /** The server's bound for levels without their own, in requests. */
  readonly maxQueuedRequests: number
}

const UNLIMITED: QueueRules = {
  timeoutAction: 'REJECT',
  defaultTimeoutUs: 0,
  allowTimeoutOverride: false,
  maxQueueSize: 0,
}

/** Compiles the `dynamic_batching` of a validated and normalised config. */
export function compileDynamicRules(
  config: ModelConfig,
  dynamic: DynamicBatching,
  maxQueuedRequests: number,
): DynamicRules {
  const preferred = dynamic.preferred_batch_size
  return {
    batching: {
      maxBatchSize: Math.max(1, config.max_batch_size),
      preferredBatchSizes: new Set(preferred),
      maxPreferredBatchSize: Math.max(0, ...preferred),
      maxQueueDelayMs: dynamic.max_queue_delay_microseconds / 1000,
    },
    levels: dynamic.priority_levels,
    defaultLevel: dynamic.priority_levels === 0 ? 0 : dynamic.default_priority_level,
    defaultLevelRules: toRules(dynamic.default_queue_policy),
    levelRules: new Map(
      Object.entries(dynamic.priority_queue_policy).map(([level, policy]) => [
        Number(level),
        toRules(policy),
      ]),
    ),
    maxQueuedRequests,
  }
}

function toRules(policy: QueuePolicy | undefined): QueueRules {
  if (policy === undefined) return UNLIMITED
  return {
    timeoutAction: policy.timeout_action,
    defaultTimeoutUs: policy.default_timeout_microseconds,
    allowTimeoutOverride: policy.allow_timeout_override,
    maxQueueSize: policy.max_queue_size,
  }
}
