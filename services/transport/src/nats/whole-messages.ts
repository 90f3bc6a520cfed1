import type { CameBytes } from '../ignored-messages.ts'
import type { PlaceMessage } from './wire-parser.ts'

/** A message of the broker as it came. */
export interface BrokerMessage extends CameBytes {
  /** Where an answer is expected. */
  readonly reply: string | undefined
  /** The broker says that there is no responder where we published with this subject as the reply. */
  readonly isNoResponder: boolean
}

/** Takes messages as a whole. */
export function placeWhole(take: (message: BrokerMessage) => void): PlaceMessage {
  return (_head, { subject, reply, size, isNoResponder }) => {
    const bytes = Buffer.allocUnsafe(size)
    return { into: bytes, arrived: () => take({ subject, reply, isNoResponder, bytes }) }
  }
}
