import type { CancelSignal, ServeError } from '@tutti/errors'
import type { Envelope, PeerMessage } from '@tutti/protocol'
import { ReadyGate } from '@tutti/tensor'
import type { BearerResponse } from '../tensor-bearer.ts'
import { transferBytes } from '../transfers/split-tensors.ts'
import { arrivedBytes } from './open-call.ts'

export type Offer = Extract<PeerMessage, { type: 'offer' }>

/** What the owner of the callee executes: one accepted call whose inputs are all there. */
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

/** A call that this peer has accepted and whose caller has not said `done`. */
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
  /** Responses that wait for credit. */
  readonly queue: BearerResponse[]
  sent: number
  /** Our transfers of sent responses that the caller has not read, by the response's index. */
  readonly held: Map<number, readonly HeldTransfer[]>
  readonly unsent: Set<number>
  /** Bytes of outputs of each response that is sent and that the caller has not read, as far as it has said so. */
  readonly unread: number[]
  /** Their sum. */
  unreadBytes: number
  /** Where the execution waits for the caller to read. */
  readonly gate: ReadyGate
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

export interface HeldTransfer {
  readonly transfer: number
  readonly size: number
}

/** A call as it is when its offer is accepted. */
export function takeCall(now: number, offer: Offer): TakenCall {
  const { from, call, parts, envelope, responseCredits } = offer
  const inputs = parts.map(arrivedBytes)
  return {
    key: callKey(from, call),
    from,
    call,
    envelope,
    inputs,
    missing: inputs.filter((input) => input === undefined).length,
    inputTransfers: parts.flatMap((part) => (part.kind === 'transfer' ? [part.transfer] : [])),
    reserved: transferBytes(parts),
    arrivedAt: now,
    abort: new AbortController(),
    offeredCredits: responseCredits,
    granted: responseCredits,
    isRunning: false,
    queue: [],
    sent: 0,
    held: new Map(),
    unsent: new Set(),
    unread: [],
    unreadBytes: 0,
    gate: new ReadyGate(),
    heldBytes: 0,
    hasFinal: false,
    isFinalSent: false,
    heardAt: now,
    takenAt: now,
    sentAt: now,
  }
}

/** The response that ends a call with an error. */
export function errorResponse(index: number, error: ServeError): BearerResponse {
  return { index, final: true, outputs: [], parameters: new Map(), error }
}

/** Names a call everywhere: the caller's id and its number. A number holds no space. */
export function callKey(from: string, call: number): string {
  return `${call} ${from}`
}
