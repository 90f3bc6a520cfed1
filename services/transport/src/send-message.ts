import type { Message } from '@tutti/protocol'

type WithoutSender<T> = T extends Message ? Omit<T, 'from'> : never

/** A member message before the sender has put its id on it. */
export type OutgoingMessage = WithoutSender<Message>

/**
 * Sends a message to a member. What cannot be sent now, because the broker is away, is lost.
 * @throws ServeError if the message cannot be encoded: MESSAGE_TOO_LARGE, MALFORMED_MESSAGE. Only offers and responses can be
 * so.
 */
export type SendMessage = (to: string, message: OutgoingMessage) => void
