import { ServeError } from '@tutti/errors'

/** Makes the error for bytes of a member that are no valid message. @param field - name of the wrong field. */
export function malformedField(field: string, what: string): ServeError {
  return new ServeError('MALFORMED_MESSAGE', `member message: ${field}: ${what}`, {
    details: { field },
  })
}

/** Makes the error for a message of another protocol version, or of an unknown type. */
export function unsupportedField(field: string, what: string): ServeError {
  return new ServeError('UNSUPPORTED', `member message: ${field}: ${what}`, { details: { field } })
}

/** Makes the error for a message that exceeds a limit. */
export function tooLarge(what: string): ServeError {
  return new ServeError('MESSAGE_TOO_LARGE', `member message: ${what}`)
}
