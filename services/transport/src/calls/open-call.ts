import type { ServeError } from '@tutti/errors'
import type { Envelope, PeerMessage, TensorPart } from '@tutti/protocol'
import type { BearerResponse } from '../tensor-bearer.ts'

/** Takes what comes back for one call: responses in order, then nothing or one failure. */
export interface CallReceiver {
  /** `onTaken` is to be called once, when the reader has the response, or wants none any more. */
  response(response: BearerResponse, onTaken: (now: number) => void): void
  failed(error: ServeError): void
}

export type ResponseMessage = Extract<PeerMessage, { type: 'response' }>

/** A response whose message is here and whose transfers may still be on their way. */
export interface ArrivingResponse {
  readonly message: ResponseMessage
  /** In the order of `message.parts`; undefined what has not arrived. */
  readonly bytes: (Uint8Array | undefined)[]
  missing: number
  /** Bytes that it has reserved. */
  reserved: number
}

/** A call of ours that has neither ended nor failed. */
export interface OpenCall {
  readonly call: number
  readonly to: string
  readonly envelope: Envelope
  readonly parts: readonly TensorPart[]
  readonly receiver: CallReceiver
  /** Our transfers, all of them. */
  readonly transfers: readonly number[]
  /** Those that are not wholly sent. */
  readonly unsent: Set<number>
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
  /** Since when the next response has no room. */
  waitingSince: number | undefined
  /** Since when a later response is here and the next one is not. */
  gapSince: number | undefined
  /** The reader wants nothing more. */
  isDropped: boolean
  hasEnded: boolean
}

/** True if the replica may have all that it needs to execute. */
export function mayHaveExecuted(call: OpenCall): boolean {
  return call.unsent.size === 0
}

/** Bytes of a part of a response: what rides in the message, or what has arrived; undefined for what has not. */
export function arrivedBytes(part: TensorPart): Uint8Array | undefined {
  if (part.kind === 'inline') return part.bytes
  return part.size === 0 ? new Uint8Array() : undefined
}

/** The response for the reader. */
export function toBearerResponse(
  { message, bytes }: ArrivingResponse,
  error: ServeError | undefined,
): BearerResponse {
  const { index, final, outputs, parameters, times } = message
  return {
    index,
    final,
    outputs: outputs.map((output, i) => ({ ...output, data: bytes[i] ?? new Uint8Array() })),
    parameters,
    ...(error !== undefined && { error }),
    ...(times !== undefined && { times: { ...times, transferNs: 0 } }),
  }
}
