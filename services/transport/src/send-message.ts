import type { Message } from '@tutti/protocol'

type WithoutSender<T> = T extends Message ? Omit<T, 'from'> : never

/** A member message before the sender has put its id on it. */
export type OutgoingMessage = WithoutSender<Message>

/**
 * Sends a message to a member. While the broker is away it is lost.
 * @throws ServeError MESSAGE_TOO_LARGE, MALFORMED_MESSAGE for an offer or a response that cannot be encoded; others always can.
 */
export type SendMessage = (to: string, message: OutgoingMessage) => void
