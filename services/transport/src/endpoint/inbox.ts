import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { decodeToken, type Subjects } from '@tutti/protocol'
import type { BrokerLink } from '../nats/broker-link.ts'
import type { BrokerMessage } from '../nats/nats-connection.ts'

/** Told by the broker that there is no responder where we published. */
export interface InboxListener {
  /** For the offer of this call. */
  noResponderForCall(call: number): void
  /** For another message to this member. */
  noResponderAt(member: string): void
}

/**
 * Where answers to this member come. The last two tokens say to what: a ping of ours, the offer of a call, or a message to a member;
 * for the latter two only the broker answers: there is no responder.
 */
export class Inbox {
  readonly #root: string
  readonly #link: BrokerLink
  readonly #clock: Clock
  readonly #listener: InboxListener
  readonly #pending = new Map<string, PromiseWithResolvers<void>>()
  #next = 1

  constructor(o: {
    readonly self: string
    readonly link: BrokerLink
    readonly clock: Clock
    readonly subjects: Subjects
    readonly listener: InboxListener
  }) {
    this.#root = o.subjects.inbox(o.self)
    this.#link = o.link
    this.#clock = o.clock
    this.#listener = o.listener
    o.link.control.subscribe(`${this.#root}.>`, (message) => this.#take(message))
  }

  /**
   * Asks once; what is answered says nothing but that somebody is there.
   *
   * @throws ServeError STEP_UNAVAILABLE if there is no responder, the time is over or the broker goes away.
   */
  async ping(subject: string, timeoutMs: number): Promise<void> {
    const id = String(this.#next++)
    const answer = Promise.withResolvers<void>()
    this.#pending.set(id, answer)
    const stopTimer = this.#clock.setTimer(timeoutMs, () =>
      answer.reject(unanswered(`no answer came within ${timeoutMs} ms`)),
    )
    try {
      if (!this.#link.publish(subject, EMPTY, `${this.#root}.ask.${id}`)) {
        throw unanswered('the broker is away')
      }
      await answer.promise
    } finally {
      this.#pending.delete(id)
      stopTimer()
    }
  }

  /** The broker is away: no answer comes any more. */
  disconnected(): void {
    for (const pending of this.#pending.values()) pending.reject(unanswered('the broker is away'))
  }

  #take({ subject, isNoResponder }: BrokerMessage): void {
    const [kind, token, ...rest] = subject.slice(this.#root.length + 1).split('.')
    if (token === undefined || rest.length > 0) return
    if (kind === 'ask') {
      const pending = this.#pending.get(token)
      if (isNoResponder) pending?.reject(unanswered('it does not listen'))
      else pending?.resolve()
      return
    }
    if (!isNoResponder) return
    if (kind === 'call') this.#listener.noResponderForCall(Number(token))
    const member = kind === 'peer' ? decodeToken(token) : undefined
    if (member !== undefined) this.#listener.noResponderAt(member)
  }
}

function unanswered(why: string): ServeError {
  return new ServeError('STEP_UNAVAILABLE', why)
}

const EMPTY = new Uint8Array()
