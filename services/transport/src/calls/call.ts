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

/** The parts of a member that all its calls use, in both directions. */
export interface MessagingContext {
  readonly settings: EndpointSettings
  readonly send: SendMessage
  readonly incomingTransfers: IncomingTransfers
  readonly outgoingTransfers: OutgoingTransfers
  readonly inlineLimits: () => InlineLimits
  /** Bytes of transfers that a member takes unasked, as it announces; 0 of one that was not heard. */
  readonly unaskedBytes: (member: string) => number
  readonly clock: Clock
}

/** A response as it crosses processes. */
export interface WireResponse extends StepResponse {
  /** Set instead of outputs; an error is always final. */
  readonly error?: ServeError
}

/** The bytes of a request, as it lends them. */
export interface LentTensors extends Lent {
  readonly tensors: readonly Uint8Array[]
}

/** Who makes a call of ours, lends its tensors, and hears of it. */
export interface CallListener extends Lent {
  readonly sink: ResponseSink
  /** Called once, before the sink has the last. */
  readonly ended: () => void
}

/** The work that the owner of incoming calls executes: one that was taken and whose inputs are all there. */
export interface CallJob {
  /** Names the call for `respond` and `ended`. */
  readonly key: string
  readonly from: string
  /** `remainingMs` is what is left now. */
  readonly envelope: Envelope
  /** In the order of `envelope.inputs`. */
  readonly inputs: readonly Uint8Array[]
  /** Aborts when the caller cancels, is gone, or the time is over; the reason is a ServeError. */
  readonly signal: CancelSignal
}
