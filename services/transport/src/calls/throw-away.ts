import type { IncomingTransfers } from '../transfers/incoming-transfers.ts'
import type { Offer, ResponseMessage } from './call.ts'

/** The message is not taken: what comes unasked of its tensors, before or after it, is not kept. */
export function throwAway(
  incomingTransfers: IncomingTransfers,
  message: Offer | ResponseMessage,
): void {
  for (const part of message.parts) {
    if (part.kind === 'transfer' && part.isUnasked)
      incomingTransfers.throwAway(message.from, part.transfer)
  }
}
