import type { StepRequest } from '@tutti/tensor'
import type { SequenceStates } from './sequence-states.ts'

/** A request of a sequence, from its arrival to the end of its execution. */
export interface SequenceEntry<T> {
  readonly item: T
  readonly request: StepRequest
  readonly sequence: Sequence<T>
  /** Requests of different keys never share a batch. */
  readonly key: string
  /** Milliseconds of the injected clock. */
  readonly enqueuedAt: number
  isWaiting: boolean
  /** The engine has had it. One that left its batch at the last moment is missing from the sequence. */
  hasExecuted: boolean
  /** The slot that its sequence had when it left the queue. */
  slot: number
}

/** The requests of one correlation id, from START to END. */
export interface Sequence<T> {
  readonly id: bigint | string
  /** In the order of arrival. */
  readonly waiting: SequenceEntry<T>[]
  /** Requests that the engine has. */
  running: number
  /** The slot that it has; undefined while it waits for one, and when it is over. */
  place: { readonly instance: number; readonly slot: number } | undefined
  /** Its last request was taken out of the queue, or it ended early. */
  isOver: boolean
  /** The engine has worked on it, so that a model may hold something for it. */
  hasBegun: boolean
  /** Responses that its executions have sent, of an iterative sequence. */
  responses: number
  /** Since when it neither waits nor runs. */
  idleSince: number
  /** When what waits for a slot is given up; Infinity if never. */
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

/** The sequences that one instance works on, and which of their requests execute together. */
export interface InstanceSlots<T> {
  /** Slots that are taken. */
  readonly used: number
  readonly sequences: Iterable<Sequence<T>>
  /** Takes a free slot. @returns its number. */
  take(sequence: Sequence<T>): number
  free(sequence: Sequence<T>, slot: number): void
  /** The first request of a sequence may execute from now on. */
  offer(entry: SequenceEntry<T>, now: number): void
  /** A request that was offered will not execute. */
  withdraw(entry: SequenceEntry<T>): void
  /** @returns requests to execute together, each the first of its sequence; or when to ask again: Infinity while none is offered. */
  next(now: number): readonly SequenceEntry<T>[] | number
}
