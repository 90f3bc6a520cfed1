import type { ByteCount, CancelSignal } from '@tutti/errors'
import type { InferRequest, RequestOrigin, ResponseSink, TraceContext } from './execution.ts'
import type { RequestObserver } from './request-observer.ts'

/** The options that accompany an execution. */
export interface ExecuteOptions {
  /** Aborts when the caller is gone or the time is over; its reason is a ServeError. The executor then fails soon. */
  readonly signal: CancelSignal
  /** Deadline by the monotonic clock of this process, in milliseconds; absent for none. */
  readonly deadlineAt?: number
  readonly trace?: TraceContext
  /** Counter of the bytes that serving the request takes besides the request and its answer; absent where nothing bounds them. */
  readonly memory?: ByteCount
  /** Absent for a client's request before it is admitted. */
  readonly origin?: RequestOrigin
  /** Observer of the request's steps and of the requests that its model makes; absent if nothing observes them. */
  readonly observer?: RequestObserver | undefined
}

/**
 * Executes requests and sends their responses: a model version in this process, one in a replica behind a transport, an
 * ensemble, or a wrapper around one of these. Every caller sees only this.
 */
export interface Executor {
  /** Begins the execution at once and never throws. Responses and errors go to `sink`, possibly before this returns. */
  execute(request: InferRequest, sink: ResponseSink, o: ExecuteOptions): void
}

/** Names a model version as a request pins it. For a router, version 0 means the latest, and the revision is ''. */
export interface ModelTarget {
  readonly model: string
  readonly version: number
  readonly revision: string
}

/** Finds the executor of a model version. If there is no such version, the executor fails every request. */
export type FindExecutor = (target: ModelTarget) => Executor
