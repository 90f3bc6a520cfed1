import type { PeerMessage } from '@tutti/protocol'

type WithoutSender<T> = T extends PeerMessage ? Omit<T, 'from'> : never

/** A peer message before the sender has put its id on it. */
export type OutgoingMessage = WithoutSender<PeerMessage>

/**
 * Sends a message to a peer. What cannot be sent now, because the broker is away, is lost.
 * @throws ServeError if the message cannot be encoded: MESSAGE_TOO_LARGE, MALFORMED_MESSAGE. Only offers and responses can be
 * so.
 */
export type PeerSend = (to: string, message: OutgoingMessage) => void
