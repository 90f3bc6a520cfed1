import { ServeError } from '@tutti/errors'

/**
 * Makes the error for a sequence whose first request lacks START. The text is Triton's, without a request id (triton-semantics
 * 2.7).
 */
export function notStartedError(id: bigint | string, model: string): ServeError {
  const text = `inference request for sequence ${id} to model '${model}' must specify the START flag on the first request of the sequence`
  return new ServeError('SEQUENCE_NOT_STARTED', text)
}

export function batchError(model: string): ServeError {
  const text = `inference request to model '${model}' must specify batch-size 1 due to requirements of sequence batcher`
  return new ServeError('INVALID_REQUEST', text)
}

export function noIdError(model: string): ServeError {
  const text = `inference request to model '${model}' must specify a non-zero or non-empty correlation ID`
  return new ServeError('INVALID_REQUEST', text)
}

export function backlogTimeoutError(): ServeError {
  const text = 'timeout of the corresponding sequence has been expired'
  return new ServeError('QUEUE_TIMEOUT', text)
}

/** Makes the error for requests that wait behind one which its caller gave up. Triton's CANCELLED has no text. */
export function endedEarlyError(id: bigint | string): ServeError {
  const text = `sequence ${id} ended early: an earlier request of it was given up before it executed`
  return new ServeError('CANCELLED', text)
}

/** Makes the error for requests that wait behind one during which the engine ended. */
export function stateLostError(id: bigint | string, model: string): ServeError {
  const text = `sequence ${id} ended early: the instance of model '${model}' that it was bound to stopped`
  return new ServeError('ENGINE_STOPPED', text)
}
