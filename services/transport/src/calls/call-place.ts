import { type ErrorDetails, ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'

/** What errors about a call say of where it went. */
export function callDetails(replica: string, envelope: Envelope): ErrorDetails {
  return {
    model: envelope.model,
    version: String(envelope.version),
    replica,
    attempt: String(envelope.attempt),
    ...(envelope.step !== '' && { step: envelope.step }),
  }
}

/** The replica cannot have executed. */
export function notExecuted(replica: string, envelope: Envelope, why: string): ServeError {
  return new ServeError('STEP_UNAVAILABLE', `replica '${replica}' ${why}`, {
    details: callDetails(replica, envelope),
  })
}

/** The replica had all it needs to execute, so it may have. */
export function maybeExecuted(replica: string, envelope: Envelope, why: string): ServeError {
  return new ServeError('STEP_LOST', `replica '${replica}' ${why}; it may have executed`, {
    details: callDetails(replica, envelope),
  })
}
