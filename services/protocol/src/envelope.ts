import type { Datatype, RequestContext, Shape } from '@tutti/tensor'

/** Header of a tensor in an envelope. The tensors' bytes travel beside the envelope, in the order of the headers. */
export interface TensorHeader {
  readonly name: string
  readonly datatype: Datatype
  readonly shape: Shape
}

/**
 * Request to a replica to execute one step of a request, or from a step to a router to execute a request to a model there. For a
 * router, version 0 means the latest, and the revision is ''.
 */
export interface Envelope {
  /** Key that is unique per admitted request, for cancel, logs and duplicates. */
  readonly requestKey: string
  readonly model: string
  readonly version: number
  /** The revision pinned for the request; a step refuses another one before it executes. */
  readonly revision: string
  /** Name of the step within the ensemble; '' for a request to the model itself. */
  readonly step: string
  /** Number of the attempt, from 1. */
  readonly attempt: number
  /** Milliseconds that are left of the request's time when the envelope is sent; absent if it has no deadline. */
  readonly remainingMs?: number
  /** The models that called one another up to this request, the outermost first; absent for a client's own. */
  readonly callers?: readonly string[]
  /** True (for a router) if the calling model takes any number of responses; absent if it takes exactly one. */
  readonly isDecoupled?: true
  readonly traceparent?: string
  readonly tracestate?: string
  /** Text of what executes in place of the model: a built-in, or a part of a graph. Absent for the model itself. */
  readonly program?: string
  readonly context: RequestContext
  /** Names of the outputs wanted; empty means all. */
  readonly requestedOutputs: readonly string[]
  readonly inputs: readonly TensorHeader[]
}
