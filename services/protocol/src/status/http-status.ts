import { helpAddress, type ServeError, type StatusCode } from '@tutti/errors'

const HTTP_STATUS: Readonly<Partial<Record<StatusCode, number>>> = {
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  INTERNAL: 500,
  UNIMPLEMENTED: 501,
  UNAVAILABLE: 503,
  RESOURCE_EXHAUSTED: 503,
  DEADLINE_EXCEEDED: 504,
}

const HEADER_CHARACTERS = 256

/**
 * Converts an error to an HTTP status by Triton's map, in which every code without an entry is 400 (triton-semantics 4.1). In
 * addition, our bounds give 503, deadlines 504, a missing token 401, and a forbidden call 403. Three reasons have a status of
 * their own: 405 for a wrong method, 429 for a caller over its quota, and 413 for a message over a size bound, since a 503 would
 * make clients send it again.
 */
export function toHttpStatus(error: ServeError): number {
  if (error.reason === 'METHOD_NOT_ALLOWED') return 405
  if (error.reason === 'MESSAGE_TOO_LARGE') return 413
  if (error.reason === 'QUOTA_EXCEEDED') return 429
  return HTTP_STATUS[error.code] ?? 400
}

/** Converts a text to a header value, which is printable ASCII: anything else, line breaks above all, becomes `?`. */
function toHeaderValue(text: string): string {
  return text
    .slice(0, HEADER_CHARACTERS)
    .replace(/[^\x20-\x7e]/g, '?')
    .trim()
}

/**
 * Writes the error's details as HTTP headers: the reason, the address of its help page, and where the error happened as far as
 * known.
 */
export function errorHeaders(error: ServeError): Record<string, string> {
  const headers: Record<string, string> = {
    'tutti-error-reason': error.reason,
    'tutti-error-help': helpAddress(error.reason),
  }
  for (const [name, value] of Object.entries(error.details)) {
    if (value !== undefined) headers[`tutti-error-${name}`] = toHeaderValue(value)
  }
  // Whole seconds (RFC 9110, 10.2.3).
  if (error.retryAfterMs !== undefined)
    headers['retry-after'] = String(Math.ceil(error.retryAfterMs / 1000))
  return headers
}
