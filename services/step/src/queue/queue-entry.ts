import type { StepRequest } from '@tutti/tensor'
import type { LevelRules } from './queue-rules.ts'

/** Parts of a request that a queue reads. */
export type QueuedRequest = Pick<StepRequest, 'batchSize' | 'inputs'> & {
  readonly context: Pick<StepRequest['context'], 'id' | 'priority' | 'timeoutUs'>
}

/** Priority level of a queue. */
export interface Level {
  /** Number of the level: 1 is the highest; 0 without priority levels. */
  readonly number: number
  readonly rules: LevelRules
  /** Count of waiting requests. Levels without a limit of their own share it. */
  readonly waiting: { count: number }
}

/** Waiting request. Entries are linked, so that a cancelled one leaves the middle of the queue at once. */
export interface QueueEntry<T> {
  readonly item: T
  /** Items in the batch dimension, at least 1. */
  readonly size: number
  /** Key of the request. Requests with different keys never share a batch. */
  readonly key: string
  readonly level: Level
  /** Time of the arrival, in milliseconds of the injected clock. */
  readonly enqueuedAt: number
  /** Time of the queue timeout, in milliseconds of the injected clock; Infinity if there is none. */
  readonly expiresAt: number
  isWaiting: boolean
  /** True once a timeout has moved the entry behind its level. There is no second timeout. */
  isDelayed: boolean
  previous: QueueEntry<T> | undefined
  next: QueueEntry<T> | undefined
}
