import { type ErrorDetails, type Reason, ServeError } from '@tutti/errors'
import { type Envelope, toWireError } from '@tutti/protocol'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { OutgoingMessage } from '../send-message.ts'
import type { WireResponse } from './call.ts'

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

/** Tells where a call went, for errors about it. A question is about no model. */
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

/** The replica cannot have executed. */
export function notExecuted(replica: string, envelope: Envelope, why: string): ServeError {
  return callError({
    reason: 'STEP_UNAVAILABLE',
    replica,
    envelope,
    text: `replica '${replica}' ${why}`,
  })
}

/** The replica had all it needs to execute, so it may have. */
export function maybeExecuted(replica: string, envelope: Envelope, why: string): ServeError {
  const text = `replica '${replica}' ${why}; it may have executed`
  return callError({ reason: 'STEP_LOST', replica, envelope, text })
}

/** A response that the caller does not expect. */
export function outOfTurn({ to, envelope }: MadeCall, index: number, granted: number): ServeError {
  const text = `replica '${to}' sent response ${index} out of turn, ${granted} are granted`
  return callError({ reason: 'RESPONSE_INVALID', replica: to, envelope, text })
}

/** A response whose tensors do not come. */
export function stalled({ to, envelope }: MadeCall, index: number): ServeError {
  return maybeExecuted(to, envelope, `stopped sending response ${index}`)
}

/** A call of a member that this one would not notice going. */
export function knowsTooMany(self: string, members: number): ServeError {
  return new ServeError('OVERLOADED', `member '${self}' knows ${members} members already`)
}

/** Nothing more goes to a broker that takes nothing. */
export function queueFull(
  to: string,
  envelope: Envelope,
  { bytes, most }: { readonly bytes: number; readonly most: number },
): ServeError {
  const text = `${bytes} bytes before it have not been taken, want at most ${most}`
  return callError({ reason: 'OVERLOADED', replica: to, envelope, text })
}

/** An input that no replica takes. */
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

/** Responses that the caller does not read. */
export function readsTooSlowly(
  { replica, from, envelope }: AnsweredCall,
  { waiting, bytes }: { readonly waiting: number; readonly bytes: number },
  { heldResponses, tensorBytes }: EndpointSettings,
): ServeError {
  const text = `'${from}' reads too slowly: ${waiting} responses wait, ${bytes} bytes are held, want at most ${heldResponses} and ${tensorBytes}`
  return callError({ reason: 'OVERLOADED', replica, envelope, text })
}

/** A response that the caller never has memory for. */
export function tooLargeResponse(
  { to, envelope }: MadeCall,
  size: number,
  most: number,
): ServeError {
  const text = `replica '${to}' answers with tensors of ${size} bytes, this member takes at most ${most}`
  return callError({ reason: 'MESSAGE_TOO_LARGE', replica: to, envelope, text })
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
