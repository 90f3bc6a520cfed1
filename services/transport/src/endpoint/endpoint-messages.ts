import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  decodeMessage,
  encodeMessage,
  encodeToken,
  INLINE_LIMIT_BYTES,
  INLINE_TOTAL_LIMIT_BYTES,
  type Message,
  type Subjects,
} from '@tutti/protocol'
import type { DirectLinks } from '../direct/direct-links.ts'
import type { BrokerLink } from '../nats/broker-link.ts'
import type { CameBytes } from '../nats/whole-messages.ts'
import type { OutgoingMessage } from '../send-message.ts'
import type { InlineLimits } from '../transfers/split-tensors.ts'
import type { ChunkPump } from './chunk-pump.ts'

/** The parts with which member messages are sent and received. */
export interface EndpointMessagesOptions {
  readonly self: string
  readonly link: BrokerLink
  readonly direct: DirectLinks | undefined
  readonly subjects: Subjects
  readonly clock: Clock
  /** Undefined for what it throws at. */
  readonly read: <T>(came: CameBytes, decode: (bytes: Uint8Array) => T) => T | undefined
  /** Woken by every message. */
  readonly pump: ChunkPump
}

/** Sends the messages of a member's calls, and hands on those that come for it. */
export class EndpointMessages {
  readonly #o: EndpointMessagesOptions
  readonly #inbox: string
  #taken: (now: number, message: Message) => void = () => {}

  constructor(o: EndpointMessagesOptions) {
    this.#o = o
    this.#inbox = o.subjects.inbox(o.self)
  }

  /** Begins to take messages from the broker. */
  receive(take: (now: number, message: Message) => void): void {
    const { self, link, subjects } = this.#o
    this.#taken = take
    link.control.subscribe(subjects.control(self), (came) => this.take(came, decodeMessage))
  }

  /** Hands on a message. What cannot be read is a stranger's, and changes nothing. */
  take(came: CameBytes, decode: (bytes: Uint8Array) => Message): void {
    const { self, clock, read, pump } = this.#o
    const message = read(came, decode)
    if (message === undefined || message.from === self) return
    this.#taken(clock.now(), message)
    pump.wake()
  }

  /** Finds how much may ride in a message to any member now. */
  inlineLimits(): InlineLimits {
    // A broker that takes less than ours by default must have space for names and parameters too.
    const most = Math.floor(this.#o.link.maxPayload / 2)
    return {
      each: Math.min(INLINE_LIMIT_BYTES, most),
      total: Math.min(INLINE_TOTAL_LIMIT_BYTES, most),
    }
  }

  /**
   * Sends a message to a member. If it goes over the broker and there is no responder, the broker says so to the inbox: for an offer to its call.
   * @throws ServeError MESSAGE_TOO_LARGE, MALFORMED_MESSAGE for offers and responses that cannot be messages.
   */
  send(to: string, message: OutgoingMessage): void {
    const { self, link, direct, subjects, pump } = this.#o
    const bytes = encodeMessage({ ...message, from: self })
    const { maxPayload } = link
    if (bytes.byteLength > maxPayload) {
      // The broker would refuse it; no other replica would get it either.
      const text = `${message.type} of ${bytes.byteLength} bytes on the way to member '${to}', the broker takes at most ${maxPayload}`
      throw new ServeError('MESSAGE_TOO_LARGE', text, { details: { replica: to } })
    }
    const told = message.type === 'offer' ? `call.${message.call}` : `peer.${encodeToken(to)}`
    const connection = direct?.of(to)
    if (connection !== undefined) connection.sendMessage(bytes)
    else link.publish(subjects.control(to), bytes, `${this.#inbox}.${told}`)
    pump.wake()
  }
}
