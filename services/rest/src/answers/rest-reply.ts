import { ServeError } from '@tutti/errors'
import { errorHeaders, type RestBody, toHttpStatus, toJsonText } from '@tutti/protocol'

/** A whole answer, before it is written. */
export interface RestReply extends RestBody {
  readonly status: number
  /**
   * Parts of an answer of unknown length, sent instead of `parts`: each once the client has taken the one before. Never throws.
   */
  readonly more?: AsyncGenerator<readonly Uint8Array[]>
}

export const ENCODING_HEADER = 'content-encoding'
/** Header of the answer to an encoding that is not taken, as Triton sends it. */
const ACCEPTED_ENCODINGS = 'gzip, deflate'

const JSON_TYPE = 'application/json'
/** The content type that libevhtp sends where Triton names none: errors of a model that was executing (9.15). */
const PLAIN_TYPE = 'text/plain'

/** Makes an answer with a JSON body. A bigint is written with all its digits. */
export function jsonReply(value: unknown, status = 200): RestReply {
  return textReply(status, JSON_TYPE, toJsonText(value))
}

/** Makes an answer without a body, such as that of the health endpoints. */
export function emptyReply(status: number): RestReply {
  return { status, headers: {}, parts: [], byteLength: 0 }
}

/** Makes the answer to an error: its HTTP status, the body `{"error": text}`, and headers that say where it happened. */
export function errorReply(error: ServeError): RestReply {
  const reply = textReply(
    toHttpStatus(error),
    isModelError(error) ? PLAIN_TYPE : JSON_TYPE,
    JSON.stringify({ error: error.message }),
  )
  const headers = {
    ...reply.headers,
    ...(error.code === 'UNAUTHENTICATED' && { 'www-authenticate': 'Bearer' }),
    ...(error.details.field === ENCODING_HEADER && { 'accept-encoding': ACCEPTED_ENCODINGS }),
    ...errorHeaders(error),
  }
  return { ...reply, headers }
}

/** Checks whether an error is from an execution that had begun, not from the request. */
export function isModelError(error: ServeError): boolean {
  return MODEL_ERRORS.has(error.reason) || error.details.step !== undefined
}

const MODEL_ERRORS: ReadonlySet<string> = new Set([
  'ENGINE_FAILED',
  'ENGINE_STOPPED',
  'RESPONSE_INVALID',
  'QUEUE_TIMEOUT',
  'STEP_UNAVAILABLE',
  'REVISION_GONE',
])

export function notFound(): RestReply {
  return errorReply(new ServeError('NOT_FOUND', 'Not Found'))
}

export function methodNotAllowed(allowed: readonly string[]): RestReply {
  const reply = errorReply(new ServeError('METHOD_NOT_ALLOWED', 'Method Not Allowed'))
  return { ...reply, headers: { ...reply.headers, allow: allowed.join(', ') } }
}

function textReply(status: number, contentType: string, text: string): RestReply {
  const body = Buffer.from(text)
  return {
    status,
    headers: { 'content-type': contentType },
    parts: [body],
    byteLength: body.byteLength,
  }
}
