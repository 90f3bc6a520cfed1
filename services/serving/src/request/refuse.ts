import { ServeError } from '@tutti/errors'

/** Makes the error about a request itself; `field` is a path. */
export function refuseRequest(message: string, field: string): ServeError {
  return new ServeError('INVALID_REQUEST', message, { details: { field } })
}

/** Makes the error about a parameter of a request. */
export function refuseParameter(message: string, key: string): ServeError {
  return new ServeError('INVALID_PARAMETER', message, { details: { field: `parameters.${key}` } })
}
