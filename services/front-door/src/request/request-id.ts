import { ServeError } from '@tutti/errors'

/** How Triton's messages name a request that has no id. */
const UNKNOWN_ID = '<id_unknown>'

/** `[request id: X] `, as Triton begins messages about a request's inputs. */
export function requestIdPrefix(id: string): string {
  return `[request id: ${id === '' ? UNKNOWN_ID : id}] `
}

export function refuseRequest(message: string, field: string): ServeError {
  return new ServeError('INVALID_REQUEST', message, { details: { field } })
}

export function refuseParameter(message: string, key: string): ServeError {
  return new ServeError('INVALID_PARAMETER', message, { details: { field: `parameters.${key}` } })
}
