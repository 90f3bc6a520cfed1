import type { Datatype, RequestContext, Shape } from '@tutti/tensor'

/** The header of a tensor of an envelope; its bytes travel beside it, in the same order. */
export interface TensorHeader {
  readonly name: string
  readonly datatype: Datatype
  readonly shape: Shape
}

/**
 * Asks one replica to execute one step of one request; or, from a step to a router, asks to execute a request of a model that
 * runs there. To a router version 0 is the latest, and the revision is ''.
 */
export interface Envelope {
  /** Unique per admitted request: the key for cancel, logs and duplicates. */
  readonly requestKey: string
  readonly model: string
  readonly version: number
  /** The revision pinned for the request; a step refuses another one before it executes. */
  readonly revision: string
  /** Name of the step within the ensemble; '' for a request to the model itself. */
  readonly step: string
  /** Counts from 1. */
  readonly attempt: number
  /** Milliseconds that are left of the request's time when the envelope is sent; absent if it has no deadline. */
  readonly remainingMs?: number
  /** The models that called one another up to this request, the outermost first; absent for a client's own. */
  readonly callers?: readonly string[]
  /** To a router: the calling model takes any number of responses; absent if it takes exactly one. */
  readonly isDecoupled?: true
  readonly traceparent?: string
  readonly tracestate?: string
  readonly context: RequestContext
  /** Empty means all. */
  readonly requestedOutputs: readonly string[]
  readonly inputs: readonly TensorHeader[]
}
