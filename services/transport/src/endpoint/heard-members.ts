import type { ServeError } from '@tutti/errors'
import {
  decodeHeartbeat,
  type Heartbeat,
  type SentHeartbeat,
  sharesProtocol,
} from '@tutti/protocol'
import { ForeignMembers } from '../members/foreign-members.ts'
import { type Departure, Membership, type Novelty } from '../members/membership.ts'
import type { BrokerMessage } from '../nats/whole-messages.ts'
import type { MemberContext } from './member-context.ts'

/** The receiver of what is heard of other members. */
export interface HeardListener {
  heard(heartbeat: Heartbeat, what: Novelty): void
  suspected(member: string, isSuspect: boolean): void
  gone(member: string, error: ServeError, how: Departure): void
}

/** Hears the heartbeats of the other members: steps hear routers, because they call no others, and routers hear all. */
export class HeardMembers {
  readonly membership: Membership
  readonly foreign: ForeignMembers
  readonly #context: MemberContext

  constructor(context: MemberContext, listener: HeardListener) {
    const { settings, events, role, link, subjects } = context
    this.#context = context
    this.foreign = new ForeignMembers(settings.deadAfterMs)
    this.membership = new Membership(settings, {
      heard: (heartbeat, what) => {
        if (what === 'new') events.memberAppeared(heartbeat.member, heartbeat.role)
        listener.heard(heartbeat, what)
      },
      suspected: (member) => {
        events.memberSuspected(member)
        listener.suspected(member, true)
      },
      recovered: (member) => {
        events.memberRecovered(member)
        listener.suspected(member, false)
      },
      gone: (member, error, how) => {
        events.memberGone(member, error)
        listener.gone(member, error, how)
      },
    })
    for (const heard of HEARS[role]) {
      link.control.subscribe(subjects.heartbeats(heard), (message) => this.#take(message))
    }
  }

  /** Members that are heard, of each role that this member listens to. */
  get counts(): ReadonlyMap<Heartbeat['role'], number> {
    const { role } = this.#context
    return new Map(HEARS[role].map((heard) => [heard, this.membership.members(heard).length]))
  }

  #take(message: BrokerMessage): void {
    const { subjects, self, ignored, clock } = this.#context
    const sender = subjects.memberOfHeartbeat(message.subject)
    if (sender === self) return
    const heartbeat = ignored.decode(clock.now(), message, decodeHeartbeat)
    if (heartbeat === undefined) return
    if (heartbeat.member !== sender) {
      ignored.add(clock.now(), message.subject, `heartbeat of '${heartbeat.member}'`)
    } else if (sharesProtocol(heartbeat)) this.#hear(message.subject, heartbeat)
    else {
      const foreign = this.foreign.heard(clock.now(), heartbeat)
      if (foreign !== undefined) this.#context.events.memberForeign(foreign)
    }
  }

  #hear(subject: string, heartbeat: SentHeartbeat): void {
    if (this.membership.heartbeat(heartbeat)) return
    const { settings, ignored, clock } = this.#context
    const { maxMembers, maxRevisions } = settings
    const why = `more than ${maxMembers} members that announce ${maxRevisions} revisions`
    ignored.add(clock.now(), subject, why)
  }
}

const HEARS = { step: ['router'], router: ['router', 'step'] } as const
