import { type ErrorDetails, ServeError } from '@tutti/errors'
import type { Envelope } from '@tutti/protocol'

/** True for a call to the peer itself instead of a model of it: no model has an empty name. */
export function isQuestion(envelope: Envelope): boolean {
  return envelope.model === ''
}

/** What errors about a call say of where it went. */
export function callDetails(replica: string, envelope: Envelope): ErrorDetails {
  if (isQuestion(envelope)) return { replica }
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
