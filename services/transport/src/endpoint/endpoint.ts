import { type Clock, type Logger, sleep } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  buildSubjects,
  CHUNK_HEAD_BYTES,
  decodeChunkHead,
  decodeHeartbeat,
  decodeMessage,
  type Heartbeat,
  type Message,
  type SentHeartbeat,
  type Subjects,
  sharesProtocol,
} from '@tutti/protocol'
import type { IncomingCalls } from '../calls/incoming-calls.ts'
import type { OutgoingCalls } from '../calls/outgoing-calls.ts'
import { DirectLinks } from '../direct/direct-links.ts'
import type { DirectOptions } from '../direct/direct-sockets.ts'
import type { EndpointSettings } from '../endpoint-settings.ts'
import type { BrokerOptions, TransportCounts } from '../endpoints.ts'
import { IgnoredMessages } from '../ignored-messages.ts'
import { TransportEvents } from '../log-events.ts'
import { ForeignMembers } from '../members/foreign-members.ts'
import { ListenedTime, TICK_MS } from '../members/listened-time.ts'
import { type Departure, Membership, type Novelty } from '../members/membership.ts'
import { BrokerLink } from '../nats/broker-link.ts'
import { checkBrokerOptions } from '../nats/broker-options.ts'
import type { BrokerMessage, CameBytes } from '../nats/whole-messages.ts'
import type { Arrival } from '../sockets/placed-reader.ts'
import { IncomingTransfers, mostUnaskedBytes } from '../transfers/incoming-transfers.ts'
import { OutgoingTransfers, type PieceLimits } from '../transfers/outgoing-transfers.ts'
import { ChunkPump } from './chunk-pump.ts'
import { EndpointMessages } from './endpoint-messages.ts'
import { Inbox } from './inbox.ts'
import { OwnAnnouncements, type OwnState } from './own-announcements.ts'

/** The part of a heartbeat that only the role knows. */
export type EndpointState = Omit<OwnState, 'transports' | 'unaskedBytes' | 'direct'>

/** The part of a member that its role decides: what it does with what it hears of other members. */
export interface EndpointRole {
  readonly role: Heartbeat['role']
  state(): EndpointState
  heard(heartbeat: Heartbeat, what: Novelty): void
  suspected(member: string, isSuspect: boolean): void
  gone(now: number, member: string, error: ServeError, how: Departure): void
}

/** The calls that go over an endpoint. */
export interface EndpointCalls {
  readonly caller: OutgoingCalls
  readonly callee: IncomingCalls
  on(now: number, message: Message): void
}

/** The options of every member. */
export interface EndpointOptions {
  readonly broker: BrokerOptions
  readonly direct?: DirectOptions | undefined
  readonly member: string
  readonly clock: Clock
  readonly log: Logger
  readonly settings: EndpointSettings
}

/**
 * The part that routers and steps have in common on the broker: connections, heartbeats, membership, transfers, and the clockwork that
 * drives the parts without a clock.
 */
export class Endpoint {
  readonly link: BrokerLink
  readonly direct: DirectLinks | undefined
  readonly subjects: Subjects
  readonly membership: Membership
  readonly foreign: ForeignMembers
  readonly incoming: IncomingTransfers
  readonly outgoing: OutgoingTransfers
  readonly messages: EndpointMessages
  readonly #inbox: Inbox
  readonly events: TransportEvents
  readonly #o: EndpointOptions
  readonly #role: EndpointRole
  #calls: EndpointCalls | undefined
  readonly #pump: ChunkPump
  readonly #ignored: IgnoredMessages
  readonly #announcements: OwnAnnouncements
  readonly #listened: ListenedTime
  readonly #stopTimers = new Map<string, () => void>()
  /** When the broker was lost last, by the clock. */
  #downSince = -Infinity
  #isClosing = false
  #isClosed = false
  #whenUp: (() => void)[] = []

  /** Begins to connect. @throws ServeError SETTING_INVALID, INVALID_PARAMETER for options that cannot be. */
  constructor(o: EndpointOptions, role: EndpointRole) {
    const { broker, member, clock, settings } = o
    checkBrokerOptions(broker)
    this.#o = o
    this.#role = role
    this.subjects = buildSubjects(broker)
    this.subjects.control(member)
    this.events = TransportEvents.ofMember(o)
    this.#ignored = new IgnoredMessages(this.events)
    this.#listened = new ListenedTime()
    this.incoming = new IncomingTransfers(settings, (to, message) =>
      this.messages.send(to, message),
    )
    this.foreign = new ForeignMembers(settings.deadAfterMs)
    this.outgoing = new OutgoingTransfers(() => this.#pieceLimits())
    this.membership = new Membership(settings, {
      heard: (heartbeat, what) => this.#heard(heartbeat, what),
      suspected: (suspect) => this.#suspected(suspect),
      recovered: (suspect) => {
        this.events.memberRecovered(suspect)
        role.suspected(suspect, false)
      },
      gone: (gone, error, how) => this.#gone(gone, error, how),
    })
    this.link = new BrokerLink({
      broker,
      member,
      clock,
      settings,
      events: this.events,
      up: () => this.#up(),
      down: () => this.#down(),
    })
    this.direct = o.direct && this.#openDirect(o.direct)
    const { link, direct, subjects, outgoing, events } = this
    const shared = { self: member, link, direct, subjects, clock }
    this.#announcements = new OwnAnnouncements({ ...shared, role: role.role, events })
    const pump = new ChunkPump({ ...shared, outgoing, data: link.data })
    this.#pump = pump
    this.messages = new EndpointMessages({
      ...shared,
      read: this.#decode.bind(this),
      pump,
    })
    this.#inbox = new Inbox({
      ...shared,
      listener: {
        noResponderForCall: (call) =>
          this.#absent(this.#calls?.caller.noResponder(clock.now(), call)),
        noResponderAt: (absent) => this.#absent(absent),
        answered: (present) => this.membership.answered(present),
      },
    })
    this.#listen()
    this.#every('tick', TICK_MS, () => this.#tick())
    this.#every('heartbeat', settings.heartbeatMs, () => this.announce())
  }

  /** Passes messages about calls to them, from now on. */
  attach(calls: EndpointCalls): void {
    this.#calls = calls
    this.messages.receive(calls.on.bind(calls))
  }

  /** Milliseconds since the broker was lost: 0 while it is there, `Infinity` before it is there for the first time. */
  get awayMs(): number {
    return this.link.isUp ? 0 : this.#o.clock.now() - this.#downSince
  }

  /** Reasons why others cannot reach this member now; none if they can. */
  get obstacles(): readonly string[] {
    const { isUp, failure } = this.link
    const away = `the broker is not connected${failure === '' ? '' : `: ${failure}`}`
    const unheard = this.#announcements.failure
    return [...(isUp ? [] : [away]), ...(unheard === undefined ? [] : [unheard.message])]
  }

  /** Counts of the connections, and of the members that are heard. */
  get counts(): TransportCounts {
    const heard = HEARS[this.#role.role]
    return {
      broker: this.link.counts,
      members: new Map(heard.map((role) => [role, this.membership.members(role).length])),
      foreign: this.foreign.all.length,
      direct: this.direct?.counts,
    }
  }

  /** Resolves when both connections are there, or the time is over. @throws ServeError SETTING_INVALID if it cannot listen. */
  async untilUp(timeoutMs: number): Promise<void> {
    await this.direct?.listening
    if (this.link.isUp) return
    await new Promise<void>((resolve) => {
      const stop = this.#o.clock.setTimer(timeoutMs, resolve)
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

  /**
   * Computes how much each caller may send before it is asked: together they stay within what may be under way. Routers and steps
   * call each other.
   */
  #unaskedBytes(): number {
    const callers = this.membership.members(this.#role.role === 'step' ? 'router' : 'step').length
    const each = Math.floor(mostUnaskedBytes(this.#o.settings) / Math.max(1, callers))
    return Math.min(this.#o.settings.creditBytes, each)
  }

  /** Sends a heartbeat soon: several changes at once make one. */
  announceSoon(): void {
    if (this.#isClosed || this.#stopTimers.has('soon')) return
    const stop = this.#o.clock.setTimer(SOON_MS, () => {
      this.#stopTimers.delete('soon')
      this.#guard(() => this.announce())
    })
    this.#stopTimers.set('soon', stop)
  }

  /** Says that no new work is wanted, by the role's state, and waits until `open` calls are 0. @throws the signal's reason. */
  async drain(open: () => number, signal: AbortSignal): Promise<void> {
    this.events.draining(open())
    this.announce()
    while (open() > 0) await sleep(IDLE_CHECK_MS, { clock: this.#o.clock, signal })
    this.events.drained()
  }

  /** Cancels what runs, says farewell, flushes and closes both connections. What is not answered is lost. */
  async close(): Promise<void> {
    if (this.#isClosing) return
    this.#isClosing = true
    const { clock, settings } = this.#o
    const { caller, callee } = this.#calls ?? {}
    callee?.drain()
    // Before the calls from here: who called learns from the farewell that its call is lost, not what failed below it.
    callee?.disconnected(clock.now())
    const why = `the ${this.#role.role} closes`
    caller?.cancelAll(clock.now(), new ServeError('CANCELLED', why))
    caller?.sayDone()
    // Nothing that was said directly may come after the farewell: an offer that was taken before it is not offered elsewhere.
    await this.direct?.close(settings.connectMs)
    this.#announcements.send({
      description: '',
      inFlight: 0,
      queued: 0,
      freeSlots: 0,
      freeBytes: 0,
      unaskedBytes: 0,
      draining: true,
      revisions: [],
      transports: [],
    })
    this.#isClosed = true
    for (const stop of this.#stopTimers.values()) stop()
    this.#stopTimers.clear()
    for (const wake of this.#whenUp.splice(0)) wake()
    await this.link.close(settings.connectMs)
  }

  #listen(): void {
    const { link, subjects } = this
    const { member } = this.#o
    for (const role of HEARS[this.#role.role]) {
      const take = (message: BrokerMessage): void => this.#onHeartbeat(message)
      link.control.subscribe(subjects.heartbeats(role), take)
    }
    link.control.subscribe(subjects.ping(member), ({ reply }) => this.#answerPing(reply))
    link.data.place(subjects.data(member), (head, { size, subject }) =>
      this.#place(subject, head, size, undefined),
    )
  }

  /** @param sender - undefined if any member may be it. */
  #place(
    subject: string,
    head: Uint8Array,
    size: number,
    sender: string | undefined,
  ): Arrival | undefined {
    const { clock } = this.#o
    const chunk = this.#decode({ subject, bytes: head }, (bytes) =>
      ofSender(decodeChunkHead(bytes, size), sender),
    )
    const place = chunk && this.incoming.place(chunk, chunk.payloadBytes)
    return place && { into: place.into, arrived: () => place.arrived(clock.now()) }
  }

  #openDirect(direct: DirectOptions): DirectLinks {
    const { member: self, clock, settings } = this.#o
    const { events, link } = this
    return new DirectLinks({
      self,
      role: this.#role.role,
      direct,
      settings,
      events,
      maxPayload: () => link.maxPayload,
      traffic: {
        message: (member, bytes) =>
          this.messages.take({ subject: `direct ${member}`, bytes }, (said) =>
            ofSender(decodeMessage(said), member),
          ),
        place: (member, head, size) => this.#place(`direct ${member}`, head, size, member),
        alive: (member) => this.membership.answered(member),
        ended: (member, isInOrder) => {
          if (!link.isUp) this.#failUnreached()
          // A member that leaves ends it so, and has said before what it took: its farewell, which follows, decides the rest.
          else if (!isInOrder) this.#calls?.caller.pathBroken(clock.now(), member)
          // The broker knows sooner than a silence says whether it is the member that is gone.
          this.#inbox.ping(member)
        },
      },
    })
  }

  /** A reply that is no member's inbox is a stranger's: it would make us speak where we do not mean to. */
  #answerPing(reply: string | undefined): void {
    const [prefix] = this.subjects.all.split('>')
    if (reply?.startsWith(`${prefix}inbox.`) === true) this.link.publish(reply, EMPTY)
  }

  /** Decodes a message. One that cannot be read is a stranger's, and changes nothing. @returns undefined for it. */
  #decode<T>({ subject, bytes }: CameBytes, decode: (bytes: Uint8Array) => T): T | undefined {
    try {
      return decode(bytes)
    } catch (error) {
      this.#ignored.add(this.#o.clock.now(), subject, error)
      return undefined
    }
  }

  #onHeartbeat(message: BrokerMessage): void {
    const sender = this.subjects.memberOfHeartbeat(message.subject)
    if (sender === this.#o.member) return
    const heartbeat = this.#decode(message, decodeHeartbeat)
    if (heartbeat !== undefined) this.#takeHeartbeat(message.subject, sender, heartbeat)
  }

  #takeHeartbeat(subject: string, sender: string | undefined, heartbeat: SentHeartbeat): void {
    const now = this.#o.clock.now()
    const { member } = heartbeat
    if (member !== sender) {
      this.#ignored.add(now, subject, `heartbeat of '${member}'`)
    } else if (!sharesProtocol(heartbeat)) {
      const foreign = this.foreign.heard(now, heartbeat)
      if (foreign !== undefined) this.events.memberForeign(foreign)
    } else if (!this.membership.heartbeat(heartbeat)) {
      const { maxMembers, maxRevisions } = this.#o.settings
      const why = `more than ${maxMembers} members that announce ${maxRevisions} revisions`
      this.#ignored.add(now, subject, why)
    }
  }

  #heard(heartbeat: Heartbeat, what: Novelty): void {
    if (what === 'new') {
      this.events.memberAppeared(heartbeat.member, heartbeat.role)
      // The newcomer should not wait for our next heartbeat to know us, and what we serve.
      this.#announcements.sayAll()
      this.announceSoon()
    }
    this.direct?.heard(heartbeat)
    this.#role.heard(heartbeat, what)
  }

  #suspected(member: string): void {
    this.events.memberSuspected(member)
    this.#role.suspected(member, true)
    this.#inbox.ping(member)
  }

  #gone(member: string, error: ServeError, how: Departure): void {
    this.events.memberGone(member, error)
    this.direct?.gone(member)
    this.#role.gone(this.#o.clock.now(), member, error, how)
  }

  /** The broker does not know it. One with a direct connection may be cut off from the broker only. */
  #absent(member: string | undefined): void {
    if (member === undefined || this.#isDirect(member)) return
    this.membership.unreachable(member)
  }

  #up(): void {
    if (this.#isClosed) return
    this.membership.thaw()
    this.#calls?.caller.reconnected()
    this.#calls?.callee.reconnected()
    this.#announcements.sayAll()
    this.announce()
    for (const wake of this.#whenUp.splice(0)) wake()
  }

  #down(): void {
    if (this.#isClosed) return
    this.#downSince = this.#o.clock.now()
    this.membership.freeze()
    this.#failUnreached()
  }

  readonly #isDirect = (member: string): boolean => this.direct?.of(member) !== undefined

  /** Ends the calls that only the broker could carry, which is away. */
  #failUnreached(): void {
    const now = this.#o.clock.now()
    this.#calls?.caller.disconnected(now, this.#isDirect)
    this.#calls?.callee.disconnected(now, this.#isDirect)
  }

  #tick(): void {
    const now = this.#o.clock.now()
    const listenedMs = this.#listened.tick(now)
    this.link.tick(listenedMs)
    this.direct?.tick(listenedMs)
    if (!this.link.isUp || this.link.isLate) this.membership.freeze()
    else this.membership.thaw()
    this.membership.tick(listenedMs)
    this.foreign.tick(now)
    this.incoming.tick(now)
    this.#calls?.caller.sayDone(this.link.isUp ? undefined : this.#isDirect)
    this.#calls?.caller.tick(now)
    this.#calls?.callee.tick(now)
    this.#pump.wake()
  }

  #every(name: string, everyMs: number, act: () => void): void {
    const again = (): void => {
      this.#stopTimers.set(
        name,
        this.#o.clock.setTimer(everyMs, () => {
          again()
          this.#guard(act)
        }),
      )
    }
    again()
  }

  /** Runs a part of the clockwork. An error in one turn, of the role's own code too, must not stop the process. */
  #guard(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.events.handlerFailed(ServeError.from(error))
    }
  }

  #pieceLimits(): PieceLimits {
    const { wholeLimitBytes, chunkBytes } = this.#o.settings
    const most = Math.max(1, this.link.maxPayload - CHUNK_HEAD_BYTES)
    return { wholeBytes: Math.min(wholeLimitBytes, most), chunkBytes: Math.min(chunkBytes, most) }
  }
}

/** Whose heartbeats a role hears: steps call only routers. */
const HEARS = { step: ['router'], router: ['router', 'step'] } as const

/** @param sender - undefined if any member may be it. @throws ServeError MALFORMED_MESSAGE */
function ofSender<T extends { readonly from: string }>(said: T, sender: string | undefined): T {
  if (sender === undefined || said.from === sender) return said
  throw new ServeError('MALFORMED_MESSAGE', `it names '${said.from}' as its sender`)
}

/** A drain ends when the last call is done; how late that is noticed. */
const IDLE_CHECK_MS = 10
/** Long enough to gather the changes of one turn, short against a heartbeat. */
const SOON_MS = 10
const EMPTY = new Uint8Array()
