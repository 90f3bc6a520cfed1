import { type Clock, type Logger, sleep } from '@tutti/chassis'
import type { ServeError } from '@tutti/errors'
import { buildSubjects, type Heartbeat } from '@tutti/protocol'
import type { FindExecutor } from '@tutti/tensor'
import { DirectLinks, type DirectTraffic } from '../direct/direct-links.ts'
import type { DirectOptions } from '../direct/direct-sockets.ts'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { AnswerQuestion, BrokerOptions, TransportCounts } from '../endpoints.ts'
import { IgnoredMessages } from '../ignored-messages.ts'
import { TransportEvents } from '../log-events.ts'
import { ListenedTime, TICK_MS } from '../members/listened-time.ts'
import type { Novelty } from '../members/membership.ts'
import { BrokerLink } from '../nats/broker-link.ts'
import { checkBrokerOptions } from '../nats/broker-options.ts'
import { IncomingTransfers, mostUnaskedBytes } from '../transfers/incoming-transfers.ts'
import { OutgoingTransfers } from '../transfers/outgoing-transfers.ts'
import { ChunkPump } from './chunk-pump.ts'
import { Clockwork } from './clockwork.ts'
import { EndpointMessages } from './endpoint-messages.ts'
import { type HeardListener, HeardMembers } from './heard-members.ts'
import { Inbox } from './inbox.ts'
import { MemberCalls } from './member-calls.ts'
import type { MemberContext } from './member-context.ts'
import { OwnAnnouncements, type OwnState } from './own-announcements.ts'

/** The part of a heartbeat that only the role knows. */
export type EndpointState = Omit<OwnState, 'transports' | 'unaskedBytes' | 'direct'>

/** The receiver, in a role, of what is heard of other members. */
export interface MemberListener {
  heard(heartbeat: Heartbeat, what: Novelty): void
  suspected(member: string, isSuspect: boolean): void
  /**
   * Called when a member has left or is dead. @param endCalls - fails what is in flight there; call it once, when nothing new
   * goes there.
   */
  gone(member: string, error: ServeError, endCalls: () => void): void
}

/** The part of a member that its role decides. */
export interface EndpointRole {
  readonly role: Heartbeat['role']
  readonly state: () => EndpointState
  readonly listener: MemberListener
}

/** The options of every member. */
export interface EndpointOptions {
  readonly broker: BrokerOptions
  readonly direct?: DirectOptions | undefined
  readonly member: string
  readonly clock: Clock
  readonly log: Logger
  /** Executes what other members call here. */
  readonly executor: FindExecutor
  /** Answers `describe`. */
  describe(): unknown
  /** Answers every other question. */
  readonly answer: AnswerQuestion
}

/** Time between two looks at whether a drain has ended: it ends when the last call is done. */
const IDLE_CHECK_MS = 10

/**
 * A member on the broker, whatever its role: puts its parts together, drives those without a clock, and tells the calls what
 * becomes of connections and of other members.
 */
export class Endpoint {
  readonly link: BrokerLink
  readonly direct: DirectLinks | undefined
  readonly members: HeardMembers
  readonly calls: MemberCalls
  readonly #options: EndpointOptions
  readonly #settings: EndpointSettings
  readonly #role: EndpointRole
  readonly #events: TransportEvents
  readonly #incomingTransfers: IncomingTransfers
  readonly #messages: EndpointMessages
  readonly #pump: ChunkPump
  readonly #inbox: Inbox
  readonly #announcements: OwnAnnouncements
  readonly #listened = new ListenedTime()
  readonly #clockwork: Clockwork
  /** Time by the clock at which the broker was lost last. */
  #downSince = -Infinity
  #isClosing = false
  #isClosed = false
  #whenUp: (() => void)[] = []

  /** Begins to connect. @throws ServeError SETTING_INVALID, INVALID_PARAMETER for options that cannot be. */
  constructor(options: EndpointOptions, settings: EndpointSettings, role: EndpointRole) {
    const { broker, member: self, clock, executor, answer } = options
    checkBrokerOptions(broker)
    const subjects = buildSubjects(broker)
    subjects.control(self)
    const events = TransportEvents.ofMember(options)
    this.#options = options
    this.#settings = settings
    this.#role = role
    this.#events = events
    this.#clockwork = new Clockwork(clock, (error) => events.handlerFailed(error))
    this.#incomingTransfers = new IncomingTransfers(settings, (to, message) =>
      this.#messages.send(to, message),
    )
    const outgoingTransfers = new OutgoingTransfers(() => this.#messages.pieceLimits())
    const up = (): void => this.#up()
    const down = (): void => this.#down()
    this.link = new BrokerLink({ broker, member: self, clock, settings, events, up, down })
    this.direct = options.direct && this.#openDirect(options.direct)
    const context: MemberContext = {
      self,
      role: role.role,
      subjects,
      link: this.link,
      direct: this.direct,
      incomingTransfers: this.#incomingTransfers,
      outgoingTransfers,
      clock,
      settings,
      events,
      ignored: new IgnoredMessages(events),
    }
    this.members = new HeardMembers(context, this.#heardListener())
    this.#announcements = new OwnAnnouncements(context)
    this.#pump = new ChunkPump(context)
    this.#messages = new EndpointMessages(context, this.#pump, (now, message) =>
      this.calls.on(now, message),
    )
    const { membership } = this.members
    const own = { executor, answer, describe: () => options.describe() }
    this.calls = new MemberCalls({ ...context, ...own, membership, messages: this.#messages })
    this.#inbox = new Inbox(context, {
      noResponderForCall: (call) =>
        this.#absent(this.calls.outgoingCalls.noResponder(clock.now(), call)),
      noResponderAt: (absent) => this.#absent(absent),
      answered: (present) => membership.answered(present),
    })
    this.#clockwork.every('tick', TICK_MS, () => this.#tick())
    this.#clockwork.every('heartbeat', settings.heartbeatMs, () => this.announce())
  }

  /** Milliseconds since the broker was lost: 0 while it is there, `Infinity` before it is there for the first time. */
  get awayMs(): number {
    return this.link.isUp ? 0 : this.#options.clock.now() - this.#downSince
  }

  /** Reasons why others cannot reach this member now, as texts for people; none if they can. */
  get obstacles(): readonly string[] {
    const { isUp, failure } = this.link
    const away = `the broker is not connected${failure === '' ? '' : `: ${failure}`}`
    const unheard = this.#announcements.failure
    return [...(isUp ? [] : [away]), ...(unheard === undefined ? [] : [unheard.message])]
  }

  /** Counts of the connections, and of the members that are heard. */
  get counts(): TransportCounts {
    return {
      broker: this.link.counts,
      members: this.members.counts,
      foreign: this.members.foreign.all.length,
      direct: this.direct?.counts,
    }
  }

  /**
   * Waits for both connections, but no longer than `firstConnectMs`: then it goes on trying.
   * @throws ServeError SETTING_INVALID if it cannot listen; then it is closed.
   */
  async opened(): Promise<void> {
    try {
      await this.direct?.listening
    } catch (error) {
      await this.close()
      throw error
    }
    if (this.link.isUp) return
    await new Promise<void>((resolve) => {
      const stop = this.#options.clock.setTimer(this.#settings.firstConnectMs, resolve)
      this.#whenUp.push(() => {
        stop()
        resolve()
      })
    })
  }

  /** Sends a heartbeat now; one that cannot be sent is an obstacle until another can. */
  announce(): void {
    if (this.#isClosed) return
    const unaskedBytes = this.#unaskedBytes()
    const direct = this.direct?.announced
    const state = { ...this.#role.state(), unaskedBytes, ...(direct !== undefined && { direct }) }
    this.#announcements.send({ ...state, transports: ['nats'] })
  }

  /** Sends a heartbeat soon: several changes at once make one. */
  announceSoon(): void {
    this.#clockwork.soon('announce', () => this.announce())
  }

  /** Announces the role's state, which says that it drains, and waits until `open` returns 0. @throws the signal's reason. */
  async drain(open: () => number, signal: AbortSignal): Promise<void> {
    this.#events.draining(open())
    this.announce()
    while (open() > 0) await sleep(IDLE_CHECK_MS, { clock: this.#options.clock, signal })
    this.#events.drained()
  }

  /** Cancels what runs, says farewell, flushes and closes both connections. What is not answered is lost. */
  async close(): Promise<void> {
    if (this.#isClosing) return
    this.#isClosing = true
    const { connectMs } = this.#settings
    this.calls.close(`the ${this.#role.role} closes`)
    // Nothing that was said directly may come after the farewell: an offer that was taken before it is not offered elsewhere.
    await this.direct?.close(connectMs)
    this.#announcements.sayFarewell()
    this.#isClosed = true
    this.#clockwork.stop()
    for (const wake of this.#whenUp.splice(0)) wake()
    await this.link.close(connectMs)
  }

  /**
   * Computes how much each caller may send before it is asked: together they stay within what may be under way. Routers and steps
   * call each other.
   */
  #unaskedBytes(): number {
    const callers = this.members.membership.members(this.#role.role === 'step' ? 'router' : 'step')
    const each = Math.floor(mostUnaskedBytes(this.#settings) / Math.max(1, callers.length))
    return Math.min(this.#settings.creditBytes, each)
  }

  #openDirect(direct: DirectOptions): DirectLinks {
    const traffic: DirectTraffic = {
      message: (member, bytes) => this.#messages.takeFrom(member, bytes),
      place: (member, head, size) => this.#messages.placeFrom(member, head, size),
      alive: (member) => this.members.membership.answered(member),
      ended: (member, isInOrder) => this.#directEnded(member, isInOrder),
    }
    return new DirectLinks({
      self: this.#options.member,
      role: this.#role.role,
      direct,
      settings: this.#settings,
      events: this.#events,
      maxPayload: () => this.link.maxPayload,
      traffic,
    })
  }

  #directEnded(member: string, isInOrder: boolean): void {
    if (!this.link.isUp) this.calls.disconnected(this.#isDirect)
    // A member that leaves ends it so, and has said before what it took: its farewell, which follows, decides the rest.
    else if (!isInOrder) this.calls.outgoingCalls.pathBroken(this.#options.clock.now(), member)
    // The broker knows sooner than a silence says whether it is the member that is gone.
    this.#inbox.ping(member)
  }

  #heardListener(): HeardListener {
    return {
      heard: (heartbeat, what) => this.#heard(heartbeat, what),
      suspected: (member, isSuspect) => {
        this.#role.listener.suspected(member, isSuspect)
        if (isSuspect) this.#inbox.ping(member)
      },
      gone: (member, error, how) => {
        const now = this.#options.clock.now()
        this.direct?.gone(member)
        this.#role.listener.gone(member, error, () => this.calls.gone(now, member, error, how))
      },
    }
  }

  #heard(heartbeat: Heartbeat, what: Novelty): void {
    if (what === 'new') {
      // The newcomer should not wait for our next heartbeat to know us, and what we serve.
      this.#announcements.sayAll()
      this.announceSoon()
    }
    this.direct?.heard(heartbeat)
    this.calls.heard(heartbeat)
    this.#role.listener.heard(heartbeat, what)
  }

  /** Notes a member that the broker does not know. One with a direct connection may be cut off from the broker only. */
  #absent(member: string | undefined): void {
    if (member === undefined || this.#isDirect(member)) return
    this.members.membership.unreachable(member)
  }

  #up(): void {
    if (this.#isClosed) return
    this.members.membership.thaw()
    this.calls.reconnected()
    this.#announcements.sayAll()
    this.announce()
    for (const wake of this.#whenUp.splice(0)) wake()
  }

  #down(): void {
    if (this.#isClosed) return
    this.#downSince = this.#options.clock.now()
    this.members.membership.freeze()
    this.calls.disconnected(this.#isDirect)
  }

  readonly #isDirect = (member: string): boolean => this.direct?.of(member) !== undefined

  #tick(): void {
    const now = this.#options.clock.now()
    const { membership, foreign } = this.members
    const listenedMs = this.#listened.tick(now)
    this.link.tick(listenedMs)
    this.direct?.tick(listenedMs)
    if (!this.link.isUp || this.link.isLate) membership.freeze()
    else membership.thaw()
    membership.tick(listenedMs)
    foreign.tick(now)
    this.#incomingTransfers.tick(now)
    if (this.#listened.missedMs > 0) this.calls.missed(this.#listened.missedMs)
    this.calls.tick(now, this.link.isUp ? undefined : this.#isDirect)
    this.#pump.wake()
  }
}
