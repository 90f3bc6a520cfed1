import type { ByteCount, CancelSignal } from '@tutti/errors'
import type { InferRequest, RequestOrigin, ResponseSink, TraceContext } from './execution.ts'
import type { RequestObserver } from './request-observer.ts'

/** The options that accompany an execution. */
export interface ExecuteOptions {
  /** Aborts when the caller is gone or the time is over; its reason is a ServeError. The executor then fails soon. */
  readonly signal: CancelSignal
  /** When the time is over, by the clock of this process; absent for no deadline. */
  readonly deadlineAt?: number
  readonly trace?: TraceContext
  /** Counts what is made for the request beside itself and its answer; absent where nothing bounds it. */
  readonly memory?: ByteCount
  /** Absent for a client's request before it is admitted. */
  readonly origin?: RequestOrigin
  /** Observes the steps of the request, and what its model calls; absent if nothing does. */
  readonly observer?: RequestObserver | undefined
}

/**
 * Executes requests and sends their responses: a model version in this process, one in a replica behind a transport, an
 * ensemble, or a wrapper around one of these. Every caller sees only this.
 */
export interface Executor {
  /** Begins at once and does not throw: all comes to `sink`, possibly before this returns. */
  execute(request: InferRequest, sink: ResponseSink, o: ExecuteOptions): void
}

/** Names a model version as a request pins it. To a router version 0 is the latest, and the revision is ''. */
export interface ModelTarget {
  readonly model: string
  readonly version: number
  readonly revision: string
}

/** Gives the executor of a model version; that of one that is not there fails. */
export type FindExecutor = (target: ModelTarget) => Executor
