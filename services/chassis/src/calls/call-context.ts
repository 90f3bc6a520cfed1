import type { ByteCount, CancelSignal } from '@tutti/errors'

/** Time as a parameter, so that tests drive it. */
export interface Clock {
  /** Reads the monotonic clock in milliseconds, with a fraction. Only differences mean something. */
  now(): number
  /** Reads the time since the epoch in milliseconds, for people and protocols. */
  epochMs(): number
  /** Calls `callback` once after `delayMs`; the returned function cancels it. */
  setTimer(delayMs: number, callback: () => void): () => void
}

/** W3C trace context as it travels: the value of `traceparent`, and `tracestate` if there is one. */
export interface TraceParent {
  readonly traceparent: string
  readonly tracestate?: string
}

/**
 * The context that accompanies every piece of work for a request.
 *
 * `signal` aborts when the client goes away (reason: ServeError CANCELLED) or its time is over
 * (reason: ServeError DEADLINE_EXCEEDED). `deadlineAt` is the same limit on the local monotonic clock, absent if the
 * client set none; between processes it travels as remaining milliseconds.
 */
export interface CallContext {
  readonly signal: CancelSignal
  readonly deadlineAt?: number
  readonly trace?: TraceParent
  /** Counter of the bytes that serving the request takes besides the request and its answer; absent where nothing bounds them. */
  readonly memory?: ByteCount
}
