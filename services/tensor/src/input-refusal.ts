import { ServeError } from '@tutti/errors'

/**
 * Makes the INVALID_REQUEST error for an input or output, or its file, that does not fit what the model declares.
 *
 * @param field - the name of the tensor, where it is known.
 */
export function inputRefusal(problem: string, field?: string): ServeError {
  return new ServeError(
    'INVALID_REQUEST',
    problem,
    field === undefined ? {} : { details: { field } },
  )
}
