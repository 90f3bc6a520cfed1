import type { Clock } from '@tutti/chassis'
import type { CancelSignal, ServeError } from '@tutti/errors'
import type { Envelope, Message } from '@tutti/protocol'
import type { Lent, ResponseSink, StepResponse } from '@tutti/tensor'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { SendMessage } from '../send-message.ts'
import type { IncomingTransfers } from '../transfers/incoming-transfers.ts'
import type { OutgoingTransfers } from '../transfers/outgoing-transfers.ts'
import type { InlineLimits } from '../transfers/split-tensors.ts'

export type Offer = Extract<Message, { type: 'offer' }>
export type ResponseMessage = Extract<Message, { type: 'response' }>

/** The parts of a member that all its calls use, those that it makes and those that it answers. */
export interface MessagingContext {
  readonly settings: EndpointSettings
  readonly send: SendMessage
  readonly incomingTransfers: IncomingTransfers
  readonly outgoingTransfers: OutgoingTransfers
  readonly inlineLimits: () => InlineLimits
  /** Bytes of transfers that a member says it takes unasked; 0 for one that has not been heard. */
  readonly unaskedBytes: (member: string) => number
  readonly clock: Clock
}

/** A response or an error, as it crosses processes. */
export interface SentResponse extends StepResponse {
  /** Set instead of outputs; an error is always final. */
  readonly error?: ServeError
}

/** The bytes of a request's inputs, which the request lends. */
export interface LentTensors extends Lent {
  readonly tensors: readonly Uint8Array[]
}

/** The one that makes a call: lends its tensors, takes its responses, and is told of its end. */
export interface CallListener extends Lent {
  readonly sink: ResponseSink
  /** Called once, before the sink gets the final response or the failure. */
  readonly ended: () => void
}

/** The work that the owner of incoming calls executes: one that was taken and whose inputs are all there. */
export interface CallJob {
  /** Names the call for `respond` and `ended`. */
  readonly key: string
  readonly from: string
  /** `remainingMs` is what is left now. */
  readonly envelope: Envelope
  /** Bytes of the inputs, in the order of `envelope.inputs`. */
  readonly inputs: readonly Uint8Array[]
  /** Aborts when the caller cancels, is gone, or the time is over; the reason is a ServeError. */
  readonly signal: CancelSignal
}
