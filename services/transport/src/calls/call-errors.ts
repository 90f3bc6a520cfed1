import { type ErrorDetails, type Reason, ServeError } from '@tutti/errors'
import { type Envelope, toWireError } from '@tutti/protocol'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { OutgoingMessage } from '../send-message.ts'
import type { SentResponse } from './call.ts'

/** A call of ours, as errors about it name it. */
interface MadeCall {
  readonly to: string
  readonly envelope: Envelope
}

/** A call that this member answers, as errors about it name it. */
interface AnsweredCall {
  /** This member. */
  readonly replica: string
  /** The caller. */
  readonly from: string
  readonly envelope: Envelope
}

/** A call that failed, and why. */
interface CallProblem {
  readonly reason: Reason
  readonly replica: string
  readonly envelope: Envelope
  /** The error's message. */
  readonly text: string
}

/** Makes the details of errors about a call: where it went and, unless it is a question, which model it was for. */
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

/** Makes an error that says in its details which call it is about, and at which replica. */
export function callError({ reason, replica, envelope, text }: CallProblem): ServeError {
  return new ServeError(reason, text, { details: callDetails(replica, envelope) })
}

/** Makes the error of a call that ended before the replica can have executed it. */
export function notExecuted(replica: string, envelope: Envelope, why: string): ServeError {
  return callError({
    reason: 'STEP_UNAVAILABLE',
    replica,
    envelope,
    text: `replica '${replica}' ${why}`,
  })
}

/** Makes the error of a call that was lost after the replica had all that it needs to execute it. */
export function maybeExecuted(replica: string, envelope: Envelope, why: string): ServeError {
  const text = `replica '${replica}' ${why}; it may have executed`
  return callError({ reason: 'STEP_LOST', replica, envelope, text })
}

/** Makes the error for a response whose index is not the one that comes next, or is not granted. */
export function outOfTurn({ to, envelope }: MadeCall, index: number, granted: number): ServeError {
  const text = `replica '${to}' sent response ${index} out of turn, ${granted} are granted`
  return callError({ reason: 'RESPONSE_INVALID', replica: to, envelope, text })
}

/** Makes the error for a response whose tensors stopped coming. */
export function stalled({ to, envelope }: MadeCall, index: number): ServeError {
  return maybeExecuted(to, envelope, `stopped sending response ${index}`)
}

/** Makes the error for an offer of a member that this one does not know and, knowing so many, cannot watch. */
export function knowsTooMany(self: string, members: number): ServeError {
  return new ServeError('OVERLOADED', `member '${self}' knows ${members} members already`)
}

/** Makes the error for a call behind more bytes than may wait for the broker or the direct connection. */
export function queueFull(
  to: string,
  envelope: Envelope,
  { bytes, most }: { readonly bytes: number; readonly most: number },
): ServeError {
  const text = `${bytes} bytes before it have not been taken, want at most ${most}`
  return callError({ reason: 'OVERLOADED', replica: to, envelope, text })
}

/** Makes the error for an input that is larger than any member takes. */
export function tooLargeInput(
  { to, envelope }: MadeCall,
  index: number,
  { bytes, most }: { readonly bytes: number; readonly most: number },
): ServeError {
  const field = envelope.inputs[index]?.name ?? ''
  const text = `input "${field}": ${bytes} bytes on the way to replica '${to}', want at most ${most}`
  return callError({ reason: 'MESSAGE_TOO_LARGE', replica: to, envelope, text }).withDetails({
    field,
  })
}

/** Makes the error that ends an answer whose caller reads it too slowly. */
export function readsTooSlowly(
  { replica, from, envelope }: AnsweredCall,
  { waiting, bytes }: { readonly waiting: number; readonly bytes: number },
  { heldResponses, tensorBytes }: EndpointSettings,
): ServeError {
  const text = `'${from}' reads too slowly: ${waiting} responses wait, ${bytes} bytes are held, want at most ${heldResponses} and ${tensorBytes}`
  return callError({ reason: 'OVERLOADED', replica, envelope, text })
}

/** Makes the error for a response that is larger than this member ever takes. */
export function tooLargeResponse(
  { to, envelope }: MadeCall,
  size: number,
  most: number,
): ServeError {
  const text = `replica '${to}' answers with tensors of ${size} bytes, this member takes at most ${most}`
  return callError({ reason: 'MESSAGE_TOO_LARGE', replica: to, envelope, text })
}

/** Makes the response that ends a call with an error. */
export function errorResponse(index: number, error: ServeError): SentResponse {
  return { index, final: true, outputs: [], parameters: new Map(), error }
}

/** Makes the message that ends a call at its caller, whatever responses the caller has had. */
export function lostMessage(call: number, error: ServeError): OutgoingMessage {
  const response = { index: 0, final: true, outputs: [], parts: [], parameters: new Map() }
  return { type: 'response', call, ...response, error: toWireError(error) }
}
