import type { QueueEntry } from './entry-list.ts'

/** What a queue has to know about a request to place it. */
export interface QueueOffer<T> {
  readonly item: T
  /** Items in the batch dimension; 0 counts as 1. */
  readonly size: number
  readonly key: string
  /** As the client sent it; 0n is the default level. */
  readonly priority: bigint
  /** The client's queue timeout in microseconds; 0n is none. */
  readonly timeoutUs: bigint
}

/** What to do next for a free instance. */
export type QueueDecision<T> =
  | { readonly kind: 'empty' }
  /** The entries have left the queue and are to be executed together. */
  | { readonly kind: 'batch'; readonly entries: readonly QueueEntry<T>[] }
  /** Ask again at this moment of the clock, or when something arrives or leaves. */
  | { readonly kind: 'wait'; readonly until: number }

/** The requests of one model version that wait for an instance. No clock of its own, no I/O: time comes in as `now`. */
export interface RequestQueue<T> {
  readonly length: number
  /** When `expire` has something to do; Infinity if never. */
  readonly nextExpiry: number
  /** @throws ServeError QUEUE_FULL or OVERLOADED, without the `[request id: ...]` prefix. */
  add(offer: QueueOffer<T>, now: number): QueueEntry<T>
  /** False if the entry has left already. */
  remove(entry: QueueEntry<T>): boolean
  /** Applies the queue timeouts. @returns the entries that are rejected; they have left the queue. */
  expire(now: number): readonly QueueEntry<T>[]
  next(now: number): QueueDecision<T>
  /** Empties the queue. @returns what was in it. */
  clear(): readonly QueueEntry<T>[]
}

/** One shared object: deciding "nothing to do" allocates nothing. */
export const EMPTY = { kind: 'empty' } as const
