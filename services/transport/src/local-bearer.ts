import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'
import type { TensorRef } from '@tutti/tensor'
import { ResponseStream } from './response-stream.ts'
import type {
  BearerResponse,
  EnvelopeHandler,
  ReplicaAddress,
  TensorBearer,
} from './tensor-bearer.ts'

/**
 * Carries envelopes between parts of one process: a call is a function call, tensors are the sender's own bytes.
 * Same contract and same errors as the bearers that cross a network.
 */
export class LocalBearer implements TensorBearer {
  readonly #handlers = new Map<string, EnvelopeHandler>()

  /**
   * Makes a replica reachable under its name.
   * @returns closes the replica to new envelopes; what it has accepted goes on.
   */
  serve(replica: string, handler: EnvelopeHandler): () => void {
    this.#handlers.set(replica, handler)
    return () => {
      if (this.#handlers.get(replica) === handler) this.#handlers.delete(replica)
    }
  }

  call(
    to: ReplicaAddress,
    envelope: Envelope,
    tensors: readonly TensorRef[],
    o: { readonly signal: CancelSignal },
  ): AsyncIterable<BearerResponse> {
    const stream = new ResponseStream<BearerResponse>()
    const handler = this.#handlers.get(to.replica)
    if (handler === undefined) {
      stream.fail(unreachable(to, envelope))
      return stream
    }
    void answer(handler(envelope, tensors, stream, o), stream, () => unanswered(to, envelope))
    return stream
  }
}

/** Sees to it that the stream ends, whatever the handler does. */
async function answer(
  handled: Promise<void>,
  stream: ResponseStream<BearerResponse>,
  unansweredError: () => ServeError,
): Promise<void> {
  try {
    await handled
    if (!stream.ended) stream.fail(unansweredError())
  } catch (error) {
    stream.fail(ServeError.from(error))
  }
}

function unreachable(to: ReplicaAddress, envelope: Envelope): ServeError {
  return new ServeError('STEP_UNAVAILABLE', `replica '${to.replica}' does not respond`, {
    details: { model: envelope.model, replica: to.replica },
  })
}

/** A handler that returns without a final response broke its contract; the caller must not wait for ever. */
function unanswered(to: ReplicaAddress, envelope: Envelope): ServeError {
  return new ServeError('INTERNAL', `bug: replica '${to.replica}' ended without a final response`, {
    details: { model: envelope.model, replica: to.replica },
  })
}
