import type { CancelSignal, ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { StepResponse, TensorRef } from '@tutti/tensor'

/** Names one replica of a step process. A restarted process is another replica. */
export interface ReplicaAddress {
  readonly replica: string
}

/** A response as it crosses processes. */
export interface BearerResponse extends StepResponse {
  /** Set instead of outputs; an error is always final. */
  readonly error?: ServeError
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
