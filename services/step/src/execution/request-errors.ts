import { ServeError } from '@tutti/errors'
import { requestPrefix, type StepRequest } from '@tutti/tensor'

/** Makes the error of a request whose caller aborted: Triton gives CANCELLED without a text. */
export function cancelError(reason: unknown): ServeError {
  if (reason instanceof ServeError && reason.code !== 'CANCELLED') return reason
  return new ServeError('CANCELLED', '', { cause: reason })
}

export function requestDeadlineError({ context }: StepRequest): ServeError {
  const text = `${requestPrefix(context.id)}the time of the request is over`
  return new ServeError('DEADLINE_EXCEEDED', text)
}

/** Makes the error with Triton's text for a request that comes, or waits, while the server stops. */
export function stoppingError({ context }: StepRequest): ServeError {
  return new ServeError(
    'SERVER_STOPPING',
    `${requestPrefix(context.id)}Server is stopping, scheduler for model has stopped accepting new inference requests`,
  )
}

/** Makes the error of a request that runs when the server stops. */
export function stoppedError({ context }: StepRequest): ServeError {
  const text = `${requestPrefix(context.id)}Server is stopping, the execution was given up`
  return new ServeError('ENGINE_STOPPED', text)
}

export function engineError(error: unknown): ServeError {
  if (error instanceof ServeError) return error
  return new ServeError('ENGINE_FAILED', ServeError.from(error).message, { cause: error })
}

export function unansweredError(model: string): ServeError {
  const text = `model '${model}' ended its execution without a final response`
  return new ServeError('RESPONSE_INVALID', text)
}

export function undeclaredError(output: string, model: string): ServeError {
  const text = `unexpected inference output '${output}' for model '${model}'`
  // Triton's code for it, although the fault is the model's.
  return new ServeError('RESPONSE_INVALID', text, { code: 'INVALID_ARGUMENT' })
}
