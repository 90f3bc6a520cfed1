import { type ErrorDetails, type Reason, ServeError } from '@tutti/errors'
import { type Envelope, toWireError } from '@tutti/protocol'
import type { WireResponse } from './call.ts'
import type { OutgoingMessage } from './send-message.ts'

/** What errors about a call say of where it went. A question is about no model. */
export function callDetails(replica: string, envelope: Envelope): ErrorDetails {
  if (envelope.model === '') return { replica }
  return {
    model: envelope.model,
    version: String(envelope.version),
    replica,
    attempt: String(envelope.attempt),
    ...(envelope.step !== '' && { step: envelope.step }),
  }
}

/** An error about a call. */
export function callError(
  reason: Reason,
  replica: string,
  envelope: Envelope,
  text: string,
): ServeError {
  return new ServeError(reason, text, { details: callDetails(replica, envelope) })
}

/** The replica cannot have executed. */
export function notExecuted(replica: string, envelope: Envelope, why: string): ServeError {
  return callError('STEP_UNAVAILABLE', replica, envelope, `replica '${replica}' ${why}`)
}

/** The replica had all it needs to execute, so it may have. */
export function maybeExecuted(replica: string, envelope: Envelope, why: string): ServeError {
  const text = `replica '${replica}' ${why}; it may have executed`
  return callError('STEP_LOST', replica, envelope, text)
}

/** The response that ends a call with an error. */
export function errorResponse(index: number, error: ServeError): WireResponse {
  return { index, final: true, outputs: [], parameters: new Map(), error }
}

/** Ends a call at its caller, whatever it has had of it. */
export function lostMessage(call: number, error: ServeError): OutgoingMessage {
  const response = { index: 0, final: true, outputs: [], parts: [], parameters: new Map() }
  return { type: 'response', call, ...response, error: toWireError(error) }
}

/** What ends a call on its way says that the replica cannot have executed, but for these: given up, lost after it had all, and faults of ours. */
export const MAYBE_EXECUTED: ReadonlySet<Reason> = new Set<Reason>([
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'STEP_LOST',
  'INTERNAL',
  'RESPONSE_INVALID',
])
