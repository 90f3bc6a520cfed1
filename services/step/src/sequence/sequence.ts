import type { StepRequest } from '@tutti/tensor'
import type { SequenceStates } from './sequence-states.ts'

/** Request of a sequence, from its arrival to the end of its execution. */
export interface SequenceEntry<T> {
  readonly item: T
  readonly request: StepRequest
  readonly sequence: Sequence<T>
  /** Key of the request. Requests with different keys never share a batch. */
  readonly key: string
  /** Time of the arrival, in milliseconds of the injected clock. */
  readonly enqueuedAt: number
  isWaiting: boolean
  /** True once the engine has had the request. A request that left its batch at the last moment is missing from the sequence. */
  hasExecuted: boolean
  /** Slot of the sequence when the request left the queue. */
  slot: number
}

/** Sequence: the requests of one correlation id, from START to END. */
export interface Sequence<T> {
  readonly id: bigint | string
  /** Waiting requests, in the order of arrival. */
  readonly waiting: SequenceEntry<T>[]
  /** Number of requests that the engine has. */
  running: number
  /** Slot of the sequence; undefined while it waits for one, and when it is over. */
  place: { readonly instance: number; readonly slot: number } | undefined
  /** True once its last request has left the queue, or the sequence has ended early. */
  isOver: boolean
  /** True once the engine has worked on the sequence, so that a model may keep something for it. */
  hasBegun: boolean
  /** Number of responses that the executions of an iterative sequence have sent. */
  responses: number
  /** Time since which no request waits or runs, in milliseconds of the clock. */
  idleSince: number
  /** Time at which the requests that wait for a slot fail, in milliseconds of the clock; Infinity if never. */
  expiresAt: number
  /** The states that the scheduler keeps for the model between two requests. */
  states: SequenceStates | undefined
}

export function createSequence<T>(id: bigint | string): Sequence<T> {
  return {
    id,
    waiting: [],
    running: 0,
    place: undefined,
    isOver: false,
    hasBegun: false,
    responses: 0,
    idleSince: 0,
    expiresAt: Number.POSITIVE_INFINITY,
    states: undefined,
  }
}

/** Slots of one instance. They hold its sequences and decide which requests execute together. */
export interface InstanceSlots<T> {
  /** Number of taken slots. */
  readonly used: number
  readonly sequences: Iterable<Sequence<T>>
  /** Takes a free slot. @returns its number. */
  take(sequence: Sequence<T>): number
  free(sequence: Sequence<T>, slot: number): void
  /** Lets the first request of a sequence execute from now on. */
  offer(entry: SequenceEntry<T>, now: number): void
  /** Withdraws a request that was offered. */
  withdraw(entry: SequenceEntry<T>): void
  /**
   * Decides on the next batch.
   *
   * @returns the requests to execute together, each the first of its sequence; or the time to ask again, Infinity while none is
   * offered.
   */
  next(now: number): readonly SequenceEntry<T>[] | number
}
