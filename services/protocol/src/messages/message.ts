import type { StatusCode } from '@tutti/errors'
import type { Datatype, Parameters, PartReport, Shape } from '@tutti/tensor'
import type { Envelope } from '../envelope.ts'

/*
 * Messages that routers and steps (members) of one repository send each other over a broker. A call is one attempt at one step:
 * the caller offers it, the callee accepts or refuses, tensors that are too large to ride inline follow as transfers, the callee
 * answers with responses. The receiver of a transfer grants credits for it, or has said before how much it takes unasked; nothing is
 * sent beyond both.
 */

/** Place of a tensor's bytes: in the message itself, or in a transfer of their own on the data plane. */
export type TensorPart =
  | { readonly kind: 'inline'; readonly bytes: Uint8Array }
  /**
   * `transfer` is unique per sender process and counts up; `size` in bytes. An unasked transfer is sent without waiting for
   * credit.
   */
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

/** Times of an execution, in nanoseconds; see StepTimes of services/tensor. */
export interface WireTimes {
  readonly queueNs: number
  readonly computeInputNs: number
  readonly computeInferNs: number
  readonly computeOutputNs: number
  /** Report on the steps within; absent but for a part of a graph. */
  readonly part?: PartReport
}

export interface OutputHeader {
  readonly name: string
  readonly datatype: Datatype
  readonly shape: Shape
}

/**
 * Message between members. `call` is unique per caller process and counts up, so (`from`, `call`) names a call everywhere. `from`
 * is the sender's member id. Every message has it, because a subject names only the receiver.
 */
export type Message = { readonly from: string; readonly call: number } & (
  | {
      readonly type: 'offer'
      readonly envelope: Envelope
      /** Bytes of the inputs, or their transfers, in the order of `envelope.inputs`. */
      readonly parts: readonly TensorPart[]
      /** Responses that the caller takes before it grants more. */
      readonly responseCredits: number
      /** Bytes of response transfers that the caller takes unasked; none if absent. */
      readonly responseBytes?: number
      /** Calls of the caller that are done, in place of a message `done` for each. */
      readonly done?: readonly number[]
    }
  /** The callee has taken a slot. `credits` are the first credits for the offer's transfers. A response implies this message. */
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
  /** Credit for the sender of a transfer, who may send up to `upTo` bytes of the transfer in all. */
  | { readonly type: 'credit'; readonly credits: readonly TransferCredit[] }
  /**
   * Credit for the callee, who may send `responses` responses in all. `received` counts the responses that have arrived without a
   * gap. Both are totals, so that a repeated message does no harm.
   */
  | { readonly type: 'response-credit'; readonly responses: number; readonly received: number }
  /** Request to the sender of a transfer to send again from `offset`. It is sent once per transfer. */
  | { readonly type: 'resend'; readonly transfer: number; readonly offset: number }
  /** The caller no longer wants an answer. */
  | { readonly type: 'cancel'; readonly error: WireError }
  /** Notice to the callee that the final response and all its transfers have arrived, so that it may forget the call. */
  | { readonly type: 'done' }
)

export interface TransferCredit {
  readonly transfer: number
  readonly upTo: number
}

/** Header of a chunk, which is a piece of a transfer on the data plane. */
export interface ChunkHeader {
  readonly from: string
  readonly transfer: number
  readonly offset: number
  readonly total: number
}

/** Heartbeat as it is sent. Without `revisions` the earlier ones stay: a member with many sends them only now and then. */
export type SentHeartbeat = Omit<Heartbeat, 'revisions'> & {
  readonly revisions?: Heartbeat['revisions'] | undefined
}

/** Report of a member on itself, as JSON. It is sent every 250 ms, and at once when it changes. */
export interface Heartbeat {
  readonly member: string
  readonly role: 'step' | 'router'
  /** Number of the heartbeat, which counts up within a process. */
  readonly sequence: number
  /**
   * Digest of the member's answer to `describe`. A router asks again when it changes, and accepts only an answer with this
   * digest.
   */
  readonly description: string
  readonly inFlight: number
  readonly queued: number
  readonly freeSlots: number
  /** Bytes of transfers that the member has room for now. */
  readonly freeBytes: number
  /** Bytes of transfers that the member takes unasked from each caller. */
  readonly unaskedBytes: number
  readonly draining: boolean
  readonly transports: readonly ('nats' | 'tcp')[]
  /** Revisions that a step serves, [model, version, revision]; empty for a router. */
  readonly revisions: readonly (readonly [string, number, string])[]
  /** Oldest version of the member messages that the member speaks: 1. */
  readonly protocol: number
  /** Newest version of the member messages that the member speaks; absent if it is `protocol`. */
  readonly newestProtocol?: number
  /** Address where the member takes connections of other members, without the broker; absent if it takes none. */
  readonly direct?: DirectAddress
}

/** Address and key with which a member is reached without the broker. */
export interface DirectAddress {
  /** Address: `unix:PATH`, `tls://HOST:PORT` or `tcp://HOST:PORT`. A reader ignores a form that it does not know. */
  readonly address: string
  /** Random key of this start of the member. Both ends of a connection prove with it that the heartbeat came from this member. */
  readonly key: string
}
