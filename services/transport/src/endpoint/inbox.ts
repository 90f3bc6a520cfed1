import { decodeToken, encodeToken } from '@tutti/protocol'
import type { BrokerMessage } from '../nats/whole-messages.ts'
import type { MemberContext } from './member-context.ts'

/** The receiver of answers: the broker's, that there is no responder where we published, and of members, that they are there. */
export interface InboxListener {
  /** Called when the offer of this call had no responder. */
  noResponderForCall(call: number): void
  /** Called when another message to this member, or a ping, had no responder. */
  noResponderAt(member: string): void
  /** Called when the member has answered a ping. */
  answered(member: string): void
}

/**
 * The subjects on which answers to this member come. The last two tokens say to what: the offer of a call, or a message to a
 * member. A member answers nothing but pings; all else is the broker's word that there is no responder.
 */
export class Inbox {
  readonly #root: string
  readonly #context: Pick<MemberContext, 'self' | 'link' | 'subjects'>
  readonly #listener: InboxListener

  constructor(context: Pick<MemberContext, 'self' | 'link' | 'subjects'>, listener: InboxListener) {
    const { link, subjects, self } = context
    this.#context = context
    this.#root = subjects.inbox(self)
    this.#listener = listener
    link.control.subscribe(`${this.#root}.>`, (message) => this.#take(message))
    link.control.subscribe(subjects.ping(self), ({ reply }) => this.#answerPing(reply))
  }

  /** Asks a member whether it is there. The listener is told of an answer, or that there is no responder; neither may come. */
  ping(member: string): void {
    const { link, subjects } = this.#context
    link.publish(subjects.ping(member), EMPTY, `${this.#root}.peer.${encodeToken(member)}`)
  }

  /**
   * Answers a ping, but only to the inbox of a member: any other reply subject is a stranger's, to which this member must not
   * publish.
   */
  #answerPing(reply: string | undefined): void {
    const { link, subjects } = this.#context
    const [prefix] = subjects.all.split('>')
    if (reply?.startsWith(`${prefix}inbox.`) === true) link.publish(reply, EMPTY)
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
