import type { CancelSignal } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { StepResponse, TensorRef } from '@tutti/tensor'

/** Names one replica of a step process. A restarted process is another replica. */
export interface ReplicaAddress {
  readonly replica: string
}

/** A step response with what the execution took, for statistics and spans of the caller. */
export interface BearerResponse extends StepResponse {
  /** On the final response. Nanoseconds. */
  readonly times?: StepTimes
}

/** Where the time of one execution went, in nanoseconds. `transferNs` is the bearer's, the rest the step's. */
export interface StepTimes {
  readonly queueNs: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
  readonly transferNs: number
}

/** Takes the responses of one envelope. Throws nothing; after the final response it takes no more. */
export interface EnvelopeSink {
  send(response: BearerResponse): void
  /** As ResponseSink's: undefined if a further response may come now. A sink without it takes everything. */
  room?(): Promise<void> | undefined
}

export type EnvelopeHandler = (
  envelope: Envelope,
  tensors: readonly TensorRef[],
  sink: EnvelopeSink,
  o: { readonly signal: CancelSignal },
) => Promise<void>

/** Moves one envelope and its tensors to a replica, and brings back the stream of responses. */
export interface TensorBearer {
  /**
   * @param tensors - bytes of `envelope.inputs`, same order; viewed until the iteration ends.
   * @param o.signal - aborting it is how a call is cancelled; ending the iteration early only drops what comes.
   * @returns responses in order, the last one final.
   * Application errors come as a final response with `error`; the iterable throws only what went wrong on the way
   * (ServeError STEP_UNAVAILABLE and the like), where the step cannot have run.
   */
  call(
    to: ReplicaAddress,
    envelope: Envelope,
    tensors: readonly TensorRef[],
    o: { readonly signal: CancelSignal },
  ): AsyncIterable<BearerResponse>
}
