import type { ModelConfig } from '@tutti/model-config'
import { type BatchKeyInput, compileQueueRules, type QueueRules } from '../queue/queue-rules.ts'

/** A model's `sequence_batching`, compiled. */
export interface SequenceRules {
  readonly model: string
  readonly instances: number
  /** Sequences that one instance works on at a time. */
  readonly slots: number
  readonly maxIdleMs: number
  /** Each request is a sequence, for as many executions as its model wants. */
  readonly isIterative: boolean
  /** Requests that wait, of sequences with a slot and without one. */
  readonly maxQueuedRequests: number
  /** Inputs by which requests must be alike to share a batch; undefined where nothing is compared. */
  readonly batchKey: readonly BatchKeyInput[] | undefined
  readonly strategy: DirectRules | OldestRules
}

/** Each sequence has a place in the batch of its own. */
export interface DirectRules {
  readonly kind: 'direct'
  /** How long a batch waits for further sequences; 0 takes what is there. */
  readonly maxQueueDelayMs: number
  /** Requests that make a batch go at once, whatever the delay. */
  readonly enough: number
}

/** A dynamic batch of whichever sequences have a request. */
export interface OldestRules {
  readonly kind: 'oldest'
  readonly queue: QueueRules
}

/** Compiles a validated and normalised config. Without a strategy it is direct, as in Triton. */
export function compileSequenceRules(
  config: ModelConfig,
  o: { readonly instances: number; readonly maxQueuedRequests: number },
): SequenceRules {
  const { sequence_batching: batching, max_batch_size: most } = config
  const { max_queue_delay_microseconds: delayUs = 0, minimum_slot_utilization: utilization = 0 } =
    batching?.direct ?? {}
  const oldest = compileOldest(config)
  return {
    model: config.name,
    instances: o.instances,
    slots: sequenceSlots(config),
    maxIdleMs: (batching?.max_sequence_idle_microseconds ?? 0) / 1000,
    isIterative: batching?.iterative_sequence === true,
    maxQueuedRequests: o.maxQueuedRequests,
    batchKey: oldest.batchKey,
    strategy:
      batching?.oldest === undefined
        ? {
            kind: 'direct',
            maxQueueDelayMs: delayUs / 1000,
            enough: utilization * Math.max(1, most),
          }
        : { kind: 'oldest', queue: oldest },
  }
}

/** Sequences that one instance works on at a time: its batch, or `max_candidate_sequences`. */
export function sequenceSlots({ sequence_batching, max_batch_size }: ModelConfig): number {
  const candidates = sequence_batching?.oldest?.max_candidate_sequences ?? 0
  return candidates > 0 ? candidates : Math.max(1, max_batch_size)
}

/** The rules of a dynamic batcher that says the same. */
function compileOldest(config: ModelConfig): QueueRules {
  const { preferred_batch_size: preferred = [], max_queue_delay_microseconds: delayUs = 0 } =
    config.sequence_batching?.oldest ?? {}
  const dynamic = {
    preferred_batch_size: preferred,
    max_queue_delay_microseconds: delayUs,
    preserve_ordering: false,
    priority_levels: 0,
    default_priority_level: 0,
    priority_queue_policy: {},
  }
  // Requests that wait were counted when they came.
  return compileQueueRules({ ...config, dynamic_batching: dynamic }, Number.POSITIVE_INFINITY)
}
