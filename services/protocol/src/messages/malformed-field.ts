import { ServeError } from '@tutti/errors'

/** An error for bytes of a member that are no valid message; `field` is where. */
export function malformedField(field: string, what: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', `member message: ${field}: ${what}`, {
    details: { field },
  })
}

/** An error for a message of another protocol version, or of a type that this one does not have. */
export function unsupportedField(field: string, what: string): ServeError {
  return new ServeError('UNSUPPORTED', `member message: ${field}: ${what}`, { details: { field } })
}

/** An error for a message with more than one can carry. */
export function tooLarge(what: string): ServeError {
  return new ServeError('MESSAGE_TOO_LARGE', `member message: ${what}`)
}
