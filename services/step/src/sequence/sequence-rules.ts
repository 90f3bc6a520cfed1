import type { ModelConfig } from '@tutti/model-config'
import { type BatchKeyInput, compileQueueRules, type QueueRules } from '../queue/queue-rules.ts'

/** A model's `sequence_batching`, compiled. */
export interface SequenceRules {
  readonly model: string
  readonly instances: number
  /** Most sequences that one instance works on at a time. */
  readonly slots: number
  readonly maxIdleMs: number
  /** True if each request is a sequence of its own, with as many executions as its model wants. */
  readonly isIterative: boolean
  /** Most waiting requests, of sequences with and without a slot. */
  readonly maxQueuedRequests: number
  /** Inputs that must be equal in requests of one batch; undefined if none must. */
  readonly batchKey: readonly BatchKeyInput[] | undefined
  readonly strategy: DirectRules | OldestRules
}

/** Rules of the direct strategy: each sequence has its own place in the batch. */
export interface DirectRules {
  readonly kind: 'direct'
  /** Time that a batch waits for further sequences, in milliseconds; 0 executes the waiting requests at once. */
  readonly maxQueueDelayMs: number
  /** Number of requests with which a batch executes at once, whatever the delay. */
  readonly enough: number
}

/** Rules of the oldest strategy: a dynamic batch of sequences that have a request. */
export interface OldestRules {
  readonly kind: 'oldest'
  readonly queue: QueueRules
}

/** Compiles the sequence rules of a validated and normalised config. Without a strategy it is direct, as in Triton. */
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

/** Finds the number of sequences that one instance works on at a time: its batch size, or `max_candidate_sequences`. */
export function sequenceSlots({ sequence_batching, max_batch_size }: ModelConfig): number {
  const candidates = sequence_batching?.oldest?.max_candidate_sequences ?? 0
  return candidates > 0 ? candidates : Math.max(1, max_batch_size)
}

/** Compiles the strategy `oldest` into the rules of an equivalent dynamic batcher. */
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
