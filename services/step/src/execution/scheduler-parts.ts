import type { ExecutionTimes } from '@tutti/backends'
import type { ServeError } from '@tutti/errors'
import type { StepRequest } from '@tutti/tensor'

/** A request's place while it waits. */
export interface Waiting<T> {
  readonly item: T
}

/** The requests of one model version that wait: the ordinary queue, or that of sequences. */
export interface WaitingRequests<T> {
  readonly length: number
  /** When `expire` has to be called next, by the clock; no request expires before. */
  readonly nextExpiry: number
  /** @throws ServeError if the request is refused. */
  add(item: T, request: StepRequest, now: number): Waiting<T>
  /** False if the entry has left already. */
  remove(entry: Waiting<T>): boolean
  /** @returns what waits no longer, and why. */
  expire(now: number): readonly (readonly [T, ServeError])[]
  /** @returns the requests to execute on the instance that `pick` gave, or when to ask again. */
  next(now: number): readonly T[] | number
  /** Empties the queue. @returns what was in it. */
  clear(): readonly T[]
}

/** The instances of one model version. */
export interface InstanceChoice {
  /** Instances that execute nothing. */
  readonly idle: number
  /** An instance that may take an execution now, or -1. */
  pick(now: number): number
  begin(instance: number): void
  /** @param times - of the execution, if it went well. */
  end(instance: number, times: ExecutionTimes | undefined): void
}
