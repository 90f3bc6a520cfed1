import { decodeToken, encodeToken, type Subjects } from '@tutti/protocol'
import type { BrokerLink } from '../nats/broker-link.ts'
import type { BrokerMessage } from '../nats/whole-messages.ts'

/** Told by the broker that there is no responder where we published, and by members that they are there. */
export interface InboxListener {
  /** For the offer of this call. */
  noResponderForCall(call: number): void
  /** For another message to this member, or a ping. */
  noResponderAt(member: string): void
  /** The member has answered a ping. */
  answered(member: string): void
}

/**
 * Where answers to this member come. The last two tokens say to what: the offer of a call, or a message to a member. A member
 * answers nothing but pings; all else is the broker's word that there is no responder.
 */
export class Inbox {
  readonly #root: string
  readonly #link: BrokerLink
  readonly #subjects: Subjects
  readonly #listener: InboxListener

  constructor(o: {
    readonly self: string
    readonly link: BrokerLink
    readonly subjects: Subjects
    readonly listener: InboxListener
  }) {
    this.#root = o.subjects.inbox(o.self)
    this.#link = o.link
    this.#subjects = o.subjects
    this.#listener = o.listener
    o.link.control.subscribe(`${this.#root}.>`, (message) => this.#take(message))
  }

  /** Asks a member whether it is there. The listener is told of an answer, or that there is no responder; neither may come. */
  ping(member: string): void {
    this.#link.publish(
      this.#subjects.ping(member),
      EMPTY,
      `${this.#root}.peer.${encodeToken(member)}`,
    )
  }

  #take({ subject, isNoResponder }: BrokerMessage): void {
    const [kind, token, ...rest] = subject.slice(this.#root.length + 1).split('.')
    if (token === undefined || rest.length > 0) return
    if (kind === 'call' && isNoResponder) this.#listener.noResponderForCall(Number(token))
    const member = kind === 'peer' ? decodeToken(token) : undefined
    if (member === undefined) return
    if (isNoResponder) this.#listener.noResponderAt(member)
    else this.#listener.answered(member)
  }
}

const EMPTY = new Uint8Array()
