import { ServeError } from '@tutti/errors'

/** The error about a request itself; `field` is a path. */
export function refuseRequest(message: string, field: string): ServeError {
  return new ServeError('INVALID_REQUEST', message, { details: { field } })
}

/** The error about a parameter of a request. */
export function refuseParameter(message: string, key: string): ServeError {
  return new ServeError('INVALID_PARAMETER', message, { details: { field: `parameters.${key}` } })
}
