import type { IncomingTransfers } from '../transfers/incoming-transfers.ts'
import type { Offer, ResponseMessage } from './call.ts'

/** Has the tensors that come unasked with a message thrown away, before or after it: the message is not taken. */
export function throwAway(
  incomingTransfers: IncomingTransfers,
  message: Offer | ResponseMessage,
): void {
  for (const part of message.parts) {
    if (part.kind === 'transfer' && part.isUnasked)
      incomingTransfers.throwAway(message.from, part.transfer)
  }
}
