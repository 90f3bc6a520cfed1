import type { CameBytes } from '../ignored-messages.ts'
import type { PlaceMessage } from './wire-parser.ts'

/** A message as it came from the broker. */
export interface BrokerMessage extends CameBytes {
  /** Subject for the answer, if one is expected. */
  readonly reply: string | undefined
  /** True if it is the broker's word that a message of ours, with this subject for the answer, had no responder. */
  readonly isNoResponder: boolean
}

/** Makes a PlaceMessage that gathers each message and hands it over whole. */
export function placeWhole(take: (message: BrokerMessage) => void): PlaceMessage {
  return (_head, { subject, reply, size, isNoResponder }) => {
    const bytes = Buffer.allocUnsafe(size)
    return { into: bytes, arrived: () => take({ subject, reply, isNoResponder, bytes }) }
  }
}
