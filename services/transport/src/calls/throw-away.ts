import type { IncomingTransfers } from '../transfers/incoming-transfers.ts'
import type { Offer, ResponseMessage } from './call.ts'

/** Discards the tensors that come unasked with a message that is not taken, whether they come before or after it. */
export function throwAway(
  incomingTransfers: IncomingTransfers,
  message: Offer | ResponseMessage,
): void {
  for (const part of message.parts) {
    if (part.kind === 'transfer' && part.isUnasked)
      incomingTransfers.throwAway(message.from, part.transfer)
  }
}
