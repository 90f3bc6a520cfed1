import { type ErrorDetails, ServeError, type StatusCode } from '@tutti/errors'

/** An error as it stands in a log line. `code` and `reason` are absent for errors that are not ours. */
export interface ErrorDescription {
  readonly code?: StatusCode
  readonly reason?: string
  readonly message: string
  readonly details?: ErrorDetails
  /** Only where it helps to find a bug: reason INTERNAL and errors that are not ours. */
  readonly stack?: string
  readonly cause?: ErrorDescription
}

/** Causes deeper than this are left out, so that a cycle of causes ends. */
const DEEPEST_CAUSE = 8

/** Describes an error with its chain of causes. Anything that is no Error becomes its text. */
export function describeError(error: unknown, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { message: String(error) }
  const hasCause = error.cause !== undefined && depth < DEEPEST_CAUSE
  const cause = hasCause ? { cause: describeError(error.cause, depth + 1) } : {}
  if (error instanceof ServeError) return { ...describeServeError(error), ...cause }
  return { message: error.message, ...stackOf(error), ...cause }
}

function describeServeError(error: ServeError): ErrorDescription {
  const { code, reason, message, details } = error
  return {
    code,
    reason,
    message,
    ...(Object.keys(details).length > 0 ? { details } : {}),
    ...(reason === 'INTERNAL' ? stackOf(error) : {}),
  }
}

function stackOf(error: Error): { stack?: string } {
  return error.stack === undefined ? {} : { stack: error.stack }
}
