import { ServeError } from '@tutti/errors'
import type { PeerMessage } from '@tutti/protocol'
import { largestTransfer, transferBytes } from '../transfers/split-tensors.ts'
import { callDetails } from './call-place.ts'

/** How things stand at the replica that an offer comes to. */
export interface AdmissionState {
  readonly self: string
  readonly isDraining: boolean
  readonly hasSlot: boolean
  /** Calls, or questions, that are taken at the same time. */
  readonly maxCalls: number
  /** Bytes that all inputs of one call may have. */
  readonly maxTensorBytes: number
  /** True if a transfer of that number is on its way already. */
  readonly isExpected: (transfer: number) => boolean
}

/** Why an offer is refused, or undefined. What can never be is said before what cannot be now. */
export function admissionProblem(
  offer: Extract<PeerMessage, { type: 'offer' }>,
  state: AdmissionState,
): ServeError | undefined {
  const { envelope, parts } = offer
  const { self } = state
  const details = callDetails(self, envelope)
  const transfers = parts.flatMap((part) => (part.kind === 'transfer' ? [part.transfer] : []))
  const isTwice = new Set(transfers).size < transfers.length || transfers.some(state.isExpected)
  if (isTwice || offer.responseCredits === 0) {
    const what = isTwice ? 'a transfer is announced twice' : 'no response is granted'
    return new ServeError('MALFORMED_MESSAGE', `offer to replica '${self}': ${what}`, { details })
  }
  const bytes = transferBytes(parts)
  if (bytes > state.maxTensorBytes || largestTransfer(parts) > state.maxTensorBytes) {
    const text = `inputs of ${bytes} bytes on the way to replica '${self}', want at most ${state.maxTensorBytes}`
    return new ServeError('MESSAGE_TOO_LARGE', text, { details })
  }
  if (state.isDraining) {
    return new ServeError('SERVER_STOPPING', `replica '${self}' is going away`, { details })
  }
  if (!state.hasSlot) {
    const text = `replica '${self}' has no free slot, it takes ${state.maxCalls} calls at the same time`
    return new ServeError('OVERLOADED', text, { details })
  }
  const { remainingMs } = envelope
  if (remainingMs !== undefined && remainingMs <= 0) {
    return new ServeError('DEADLINE_EXCEEDED', "the request's time is over", { details })
  }
  return undefined
}
