import type { Clock } from '@tutti/chassis'
import type { CancelSignal, ServeError } from '@tutti/errors'
import type { Envelope, Message, TensorPart } from '@tutti/protocol'
import type { Lent, ReadyGate, ResponseSink, StepResponse } from '@tutti/tensor'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { SendMessage } from '../send-message.ts'
import type { IncomingTransfers } from '../transfers/incoming-transfers.ts'
import type { OutgoingTransfers } from '../transfers/outgoing-transfers.ts'
import type { InlineLimits } from '../transfers/split-tensors.ts'

export type Offer = Extract<Message, { type: 'offer' }>
export type ResponseMessage = Extract<Message, { type: 'response' }>

/** Options that the calls of one member share, in both directions. */
export interface CallOptions {
  readonly settings: EndpointSettings
  readonly send: SendMessage
  readonly incoming: IncomingTransfers
  readonly outgoing: OutgoingTransfers
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

/** A response whose message is here and whose transfers may still be on their way. */
export interface ArrivingResponse {
  readonly message: ResponseMessage
  /** In the order of `message.parts`; undefined what has not arrived. */
  readonly bytes: (Uint8Array | undefined)[]
  missing: number
  /** Bytes that it has reserved. */
  reserved: number
}

/** The state that all calls of ours to one replica share. */
export interface CalledReplica {
  /** Bytes that it takes unasked, as it announced. */
  takes: number
  /** Calls that are open, bytes of their inputs that went unasked, and bytes of responses that it may send so. */
  calls: number
  sent: number
  granted: number
  /** Calls that are done and of which it does not know that: the next offer says so, or the next tick. */
  done: number[]
}

/** A call of ours that has neither ended nor failed. */
export interface OpenCall {
  readonly call: number
  readonly to: string
  readonly replica: CalledReplica
  readonly envelope: Envelope
  readonly parts: readonly TensorPart[]
  readonly listener: CallListener
  /** Our transfers, all of them. */
  readonly transfers: readonly number[]
  /** Those that are not wholly sent; as long as there are some, the replica cannot have executed. */
  readonly unsent: Set<number>
  /** Bytes of inputs that went before the replica asked, and of responses that it may send so. */
  readonly unaskedBytes: number
  readonly responseBytes: number
  readonly openedAt: number
  offeredAt: number
  offers: number
  isAccepted: boolean
  /** When the replica last let us send, or we sent. */
  progressAt: number
  /** When the replica was last heard about this call, or asked about it. */
  heardAt: number
  readonly responses: Map<number, ArrivingResponse>
  /** Responses below this index have their transfers under way. */
  nextToOpen: number
  /** Responses below this index are with the reader. */
  nextToDeliver: number
  finalIndex: number | undefined
  /** Responses that the reader has taken. */
  taken: number
  /** Bytes of those that the replica has not been told of. */
  takenBytes: number
  /** How many responses the replica was allowed in all. */
  granted: number
  /** Since when the next response waits for memory. */
  waitingSince: number | undefined
  hasEnded: boolean
}

/** The work that the owner of the callee executes: one accepted call whose inputs are all there. */
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

/** A call that this member has accepted and whose caller has not said `done`. */
export interface TakenCall {
  readonly key: string
  readonly from: string
  readonly call: number
  readonly envelope: Envelope
  readonly inputs: (Uint8Array | undefined)[]
  /** Inputs that have not arrived. */
  missing: number
  readonly inputTransfers: readonly number[]
  /** Bytes that its inputs have reserved, until the execution has ended. */
  readonly reserved: number
  readonly arrivedAt: number
  readonly abort: AbortController
  /** Responses that the caller allowed at first. What it allows beyond them it has read. */
  readonly offeredCredits: number
  /** Responses that the caller has allowed in all. */
  granted: number
  isRunning: boolean
  /** The caller knows that the call is taken: by `accepted`, or by a response. */
  isSaid: boolean
  /** Bytes of transfers of responses that the caller takes unasked. */
  unaskedLeft: number
  /** Responses that wait for credit. */
  readonly queue: QueuedResponse[]
  sent: number
  /** Sent responses that the caller has not read and that have transfers, by index. */
  readonly held: Map<number, HeldResponse>
  readonly unsent: Set<number>
  /** Bytes of outputs of each response that is sent and that the caller has not read, as far as it has said so. */
  readonly unread: number[]
  /** Their sum. */
  unreadBytes: number
  /** Where the execution waits for the caller to read. */
  gate: ReadyGate | undefined
  /** Bytes of outputs that are queued or held. */
  heldBytes: number
  hasFinal: boolean
  isFinalSent: boolean
  /** When the caller last said something about the call. */
  heardAt: number
  /** When the caller last took something. */
  takenAt: number
  /** When we last sent something. */
  sentAt: number
}

/** A response that waits for credit. */
export interface QueuedResponse extends WireResponse {
  /** Gives the bytes of its outputs back, if they are lent. */
  readonly giveBack: (() => void) | undefined
}

/** The parts of a response that are kept until the caller has read it. */
export interface HeldResponse {
  readonly transfers: readonly HeldTransfer[]
  readonly giveBack: (() => void) | undefined
}

export interface HeldTransfer {
  readonly transfer: number
  readonly size: number
}
