import type { StatusCode } from '@tutti/errors'
import type { Datatype, Parameters, Shape } from '@tutti/tensor'
import type { Envelope } from '../envelope.ts'

/*
 * Messages that routers and steps (members) of one repository send each other over a broker. A call is one attempt at one step:
 * the caller offers it, the callee accepts or refuses, tensors that are too large to ride inline follow as transfers, the callee
 * answers with responses. The receiver of a transfer grants credits for it, or has said before how much it takes unasked; nothing is
 * sent beyond both.
 */

/** Where a tensor's bytes are: in the message itself, or in a transfer of their own on the data plane. */
export type TensorPart =
  | { readonly kind: 'inline'; readonly bytes: Uint8Array }
  /** `transfer` is unique per sender process and counts up; `size` in bytes. One that is unasked comes without credit. */
  | {
      readonly kind: 'transfer'
      readonly transfer: number
      readonly size: number
      readonly isUnasked?: true
    }

/** An error of a step on its way to the caller. */
export interface WireError {
  readonly code: StatusCode
  readonly reason: string
  readonly message: string
  readonly details: Readonly<Record<string, string>>
}

/** In nanoseconds; see StepTimes of services/tensor. */
export interface WireTimes {
  readonly queueNs: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
}

export interface OutputHeader {
  readonly name: string
  readonly datatype: Datatype
  readonly shape: Shape
}

/**
 * `call` is unique per caller process and counts up; (`from`, `call`) names a call everywhere. `from` is the sender's member id and
 * is in every message, because a subject says only to whom it goes.
 */
export type Message = { readonly from: string; readonly call: number } & (
  | {
      readonly type: 'offer'
      readonly envelope: Envelope
      /** In the order of `envelope.inputs`. */
      readonly parts: readonly TensorPart[]
      /** Responses that the caller takes before it grants more. */
      readonly responseCredits: number
      /** Bytes of transfers of responses that the caller takes unasked; none if absent. */
      readonly responseBytes?: number
      /** Calls of the caller that are done, as the message `done` says. */
      readonly done?: readonly number[]
    }
  /** A slot is taken. `credits`: first credits of the offer's transfers. A response says it too. */
  | { readonly type: 'accepted'; readonly credits: readonly TransferCredit[] }
  /** The callee did not and will not execute. */
  | { readonly type: 'refused'; readonly error: WireError }
  | {
      readonly type: 'response'
      readonly index: number
      readonly final: boolean
      readonly outputs: readonly OutputHeader[]
      readonly parts: readonly TensorPart[]
      readonly parameters: Parameters
      readonly error?: WireError
      readonly times?: WireTimes
    }
  /** To the sender of a transfer: it may send up to `upTo` bytes of it in all. */
  | { readonly type: 'credit'; readonly credits: readonly TransferCredit[] }
  /**
   * To the callee: it may send that many responses in all, and so many have come, counted up to the first that has not. Both
   * cumulative, so that a repeated message does no harm.
   */
  | { readonly type: 'response-credit'; readonly responses: number; readonly received: number }
  /** To the sender of a transfer: send again from `offset`; said once per transfer. */
  | { readonly type: 'resend'; readonly transfer: number; readonly offset: number }
  /** The caller no longer wants an answer. */
  | { readonly type: 'cancel'; readonly error: WireError }
  /** To the callee: the final response and all its transfers have arrived; it may forget the call. */
  | { readonly type: 'done' }
)

export interface TransferCredit {
  readonly transfer: number
  readonly upTo: number
}

/** A piece of a transfer. On the data plane; the bytes are a view. */
export interface ChunkHeader {
  readonly from: string
  readonly transfer: number
  readonly offset: number
  readonly total: number
}

/** A heartbeat as it is sent. Without revisions it changes none: a member with many sends them only now and then. */
export type SentHeartbeat = Omit<Heartbeat, 'revisions'> & {
  readonly revisions?: Heartbeat['revisions'] | undefined
}

/** The report of every member on itself, every 250 ms, and at once when it changes. JSON. */
export interface Heartbeat {
  readonly member: string
  readonly role: 'step' | 'router'
  /** Counts heartbeats of this process up. */
  readonly sequence: number
  /** Names what `describe` would answer, by its digest; a router asks again when it changes, and believes no other answer. */
  readonly description: string
  readonly inFlight: number
  readonly queued: number
  readonly freeSlots: number
  /** Bytes that the member would take for transfers now. */
  readonly freeBytes: number
  /** Bytes of transfers that the member takes unasked from each caller. */
  readonly unaskedBytes: number
  readonly draining: boolean
  readonly transports: readonly ('nats' | 'tcp')[]
  /** Revisions that a step serves, [model, version, revision]; empty for a router. */
  readonly revisions: readonly (readonly [string, number, string])[]
  /** The oldest version of the member messages that the member speaks: 1. */
  readonly protocol: number
  /** The newest one; absent if it is the same. */
  readonly newestProtocol?: number
  /** Where the member takes connections of other members, without the broker; absent if it takes none. */
  readonly direct?: DirectAddress
}

/** Where and how a member is reached without the broker. */
export interface DirectAddress {
  /** `unix:PATH`, `tls://HOST:PORT` or `tcp://HOST:PORT`. A reader leaves one alone that it does not know. */
  readonly address: string
  /** Random, of this start of the member; it proves that who connects has read a heartbeat, and that the member has sent it. */
  readonly key: string
}
