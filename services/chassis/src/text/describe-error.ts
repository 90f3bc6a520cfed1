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
  const { message, stack, cause } = error
  const ours = error instanceof ServeError ? error : undefined
  const hasStack = stack !== undefined && (ours?.reason ?? 'INTERNAL') === 'INTERNAL'
  const hasCause = cause !== undefined && depth < DEEPEST_CAUSE
  return {
    ...(ours && describeOurs(ours)),
    message,
    ...(hasStack && { stack }),
    ...(hasCause && { cause: describeError(cause, depth + 1) }),
  }
}

/**
 * Returns the message of an error, or its code or name if it has none: Node's error of a host whose addresses all refuse has only
 * a code.
 */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message !== '') return error.message
  return 'code' in error ? String(error.code) : error.name
}

function describeOurs({ code, reason, details }: ServeError) {
  return { code, reason, ...(Object.keys(details).length > 0 && { details }) }
}
