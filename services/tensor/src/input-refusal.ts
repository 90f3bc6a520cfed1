import { ServeError } from '@tutti/errors'

/**
 * An input or output that does not fit what the model declares, or its file.
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
