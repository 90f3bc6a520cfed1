import type { StepRequest } from '@tutti/tensor'
import type { LevelRules } from './queue-rules.ts'

/** The parts of a request that a queue reads. */
export type QueuedRequest = Pick<StepRequest, 'batchSize' | 'inputs'> & {
  readonly context: Pick<StepRequest['context'], 'id' | 'priority' | 'timeoutUs'>
}

/** The requests of one priority level. */
export interface Level {
  /** 0 without priority levels; 1 is the highest. */
  readonly number: number
  readonly rules: LevelRules
  /** Shared by the levels that have no limit of their own. */
  readonly waiting: { count: number }
}

/** A waiting request, linked into the queue so that a cancelled one leaves the middle at once. */
export interface QueueEntry<T> {
  readonly item: T
  /** Items in the batch dimension, at least 1. */
  readonly size: number
  /** Requests of different keys never share a batch. */
  readonly key: string
  readonly level: Level
  /** Milliseconds of the injected clock. */
  readonly enqueuedAt: number
  /** When the queue's own timeout strikes; Infinity if never. */
  readonly expiresAt: number
  isWaiting: boolean
  /** Its timeout has struck and moved it behind its level; it does not strike again. */
  isDelayed: boolean
  previous: QueueEntry<T> | undefined
  next: QueueEntry<T> | undefined
}
