import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { ServeError } from '@tutti/errors'
import type { DirectAddress, Heartbeat } from '@tutti/protocol'
import type { EndpointSettings } from '../endpoint-settings.ts'
import { messageOf } from '../foreign-error.ts'
import { IgnoredMessages } from '../ignored-messages.ts'
import type { TransportEvents } from '../log-events.ts'
import type { Arrival } from '../sockets/placed-reader.ts'
import { DirectConnection } from './direct-connection.ts'
import { answerHandshake, openHandshake } from './direct-handshake.ts'
import { type DirectServer, listenDirect } from './direct-listener.ts'
import {
  acceptDirectSocket,
  type DirectOptions,
  openDirectSocket,
  parseDirectAddress,
} from './direct-sockets.ts'

/** The receiver of what comes over direct connections. */
export interface DirectTraffic {
  message(member: string, bytes: Uint8Array): void
  /** Finds the place of a chunk of that member, as PlaceMessage. */
  place(member: string, head: Uint8Array, size: number): Arrival | undefined
  /** Called when something of the member has come since the last tick. */
  alive(member: string): void
  /**
   * Tells that what follows goes over the broker. What was sent to the member last may be lost; so may what it said, if it did
   * not end it in order.
   */
  ended(member: string, isInOrder: boolean): void
}

/** The direct connections of a member. */
export interface DirectCounts {
  readonly kind: DirectOptions['kind']
  /** Number of connections whose other end has proven who it is. */
  readonly open: number
  readonly opening: number
  readonly fallbacks: ReadonlyMap<FallbackReason, number>
}

/** The options of the direct connections of a member. */
export interface DirectLinksContext {
  readonly self: string
  readonly role: Heartbeat['role']
  readonly direct: DirectOptions
  readonly settings: EndpointSettings
  readonly events: TransportEvents
  /** Bytes of the largest message that may come. */
  readonly maxPayload: () => number
  readonly traffic: DirectTraffic
}

/**
 * Why the broker carries what a direct connection could: the step announces another transport (`address`), there was no connection or
 * no handshake (`connect`), the other end closed it in order (`closed`), or it broke.
 */
export const FALLBACK_REASONS = ['address', 'connect', 'closed', 'broken'] as const
export type FallbackReason = (typeof FALLBACK_REASONS)[number]

/** A step that announces where it takes connections. */
interface Known {
  readonly direct: DirectAddress
  isDialed: boolean
  /** Time before which no attempt is made. */
  retryAt: number
  /** Attempts that failed since the last that did not. */
  failures: number
}

/** Number of connections that may still have to prove who they are; each has `connectMs` for it. */
export const MOST_PENDING = 64
/**
 * Wait until the second attempt; each further pause is four times as long, up to `directRetryMs`: a start on a busy machine soon
 * passes.
 */
const FIRST_RETRY_MS = 1000
const RETRY_GROWTH = 4

/**
 * The connections of a member to others without the broker between them: a router connects to each step that announces the same kind
 * of transport, and both send all that they have for one another over that. Where there is no connection, or no longer one, the broker
 * carries it, and the router tries again: soon, then after pauses that grow up to `directRetryMs`.
 */
export class DirectLinks {
  /** Promise that resolves when the step listens, and rejects if it cannot. */
  readonly listening: Promise<void>
  readonly #context: DirectLinksContext
  readonly #key = randomBytes(32).toString('base64url')
  #server: DirectServer | undefined
  /** All that are not over, and those among them whose other end is known. */
  readonly #all = new Set<DirectConnection>()
  readonly #open = new Map<string, DirectConnection>()
  readonly #known = new Map<string, Known>()
  readonly #fallbacks = new Map<FallbackReason, number>()
  /** Connections of others than members, which must not fill the log. */
  readonly #strangers: IgnoredMessages
  #now = 0
  #isClosed = false
  #whenEmpty: (() => void) | undefined

  constructor(o: DirectLinksContext) {
    this.#context = o
    this.#strangers = new IgnoredMessages(o.events)
    this.listening = o.role === 'step' ? this.#listen() : Promise.resolve()
    // Who opens the member waits for it; a rejection before that is no unhandled one.
    this.listening.catch(() => {})
  }

  /** Address and key that heartbeats say; undefined while no other can connect. */
  get announced(): DirectAddress | undefined {
    const { address } = this.#server ?? {}
    return address === undefined ? undefined : { address, key: this.#key }
  }

  /** Members to which messages go directly now. */
  get members(): readonly string[] {
    return [...this.#open.keys()]
  }

  /** Counts of connections now, and of those since the start that the broker had to replace. */
  get counts(): DirectCounts {
    const { kind } = this.#context.direct
    const open = this.#open.size
    return { kind, open, opening: this.#all.size - open, fallbacks: this.#fallbacks }
  }

  /** Finds the connection to the member; undefined if its messages go over the broker. */
  of(member: string): DirectConnection | undefined {
    const connection = this.#open.get(member)
    return connection?.isOpen === true ? connection : undefined
  }

  /** Connects to a step whose heartbeat says where, unless the pause after a failure is not over. */
  heard({ member, role, direct }: Heartbeat): void {
    if (this.#isClosed || this.#context.role !== 'router' || role !== 'step') return
    if (direct === undefined) {
      this.#known.delete(member)
      return
    }
    let known = this.#known.get(member)
    if (known?.direct.key !== direct.key || known.direct.address !== direct.address) {
      known = { direct, isDialed: false, retryAt: this.#now, failures: 0 }
      this.#known.set(member, known)
    }
    if (!known.isDialed && this.#now >= known.retryAt) this.#dial(member, known)
  }

  /** Ends the connection to a member that is gone. */
  gone(member: string): void {
    this.#known.delete(member)
    this.#open.get(member)?.destroy('the member is gone')
  }

  /** Looks after connections that are silent. @param now - ListenedTime's, in milliseconds. */
  tick(now: number): void {
    this.#now = now
    for (const connection of this.#all) connection.tick(now)
    for (const [member, connection] of this.#open) {
      if (connection.isOpen && connection.readAt === now) this.#context.traffic.alive(member)
    }
  }

  /** Sends what is written, then closes. When it resolves the others have all of it, unless they took longer than `graceMs`. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true
    await this.listening.catch(() => {})
    this.#server?.close()
    this.#server = undefined
    for (const connection of this.#all) {
      if (connection.isOpen) connection.end()
      else connection.destroy('it closes')
    }
    if (this.#all.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#whenEmpty = resolve
    const timer = setTimeout(resolve, graceMs)
    await promise
    clearTimeout(timer)
    for (const connection of this.#all) connection.destroy('it closes')
  }

  async #listen(): Promise<void> {
    const { direct, self, events } = this.#context
    const server = await listenDirect({
      direct,
      member: self,
      accept: (socket) => this.#accept(socket),
      failed: (error) => events.directFailed(undefined, error.message),
    })
    if (server === undefined) return
    this.#server = server
    events.directListening(server.address)
  }

  #dial(member: string, known: Known): void {
    const { direct, self, settings, events } = this.#context
    const { address, key } = known.direct
    const target = parseDirectAddress(address, direct)
    known.isDialed = true
    if (target === undefined) {
      // Until it announces another.
      this.#count('address')
      events.directFailed(member, `${address} is none of transport ${direct.kind}`)
      return
    }
    this.#add(
      {
        open: (onread) => openDirectSocket(direct.kind, target, key, onread),
        handshake: openHandshake(key, self, member),
        handshakeMs: settings.directConnectMs,
      },
      (why, opened) => {
        const pauseMs = FIRST_RETRY_MS * RETRY_GROWTH ** (opened === undefined ? known.failures : 0)
        known.isDialed = false
        known.failures = opened === undefined ? known.failures + 1 : 1
        known.retryAt = this.#now + Math.min(pauseMs, settings.directRetryMs)
        if (!this.#isClosed) events.directFailed(member, why)
      },
    )
  }

  #accept(socket: Socket): void {
    const { direct, self, settings, events } = this.#context
    const { connectMs, maxMembers } = settings
    const pending = this.#all.size - this.#open.size
    if (this.#isClosed || pending >= MOST_PENDING || this.#open.size >= maxMembers) {
      socket.destroy()
      this.#ignore('there are too many connections')
      return
    }
    this.#add(
      {
        open: (onread) => acceptDirectSocket(direct.kind, socket, this.#key, onread),
        handshake: answerHandshake(this.#key, self),
        handshakeMs: connectMs,
      },
      (why, member) => {
        if (member === undefined) this.#ignore(why)
        else if (!this.#isClosed) events.directFailed(member, why)
      },
    )
  }

  #ignore(why: string): void {
    if (!this.#isClosed) this.#strangers.add(this.#now, 'direct connection', new Error(why))
  }

  /** @param ended - why, and who it was if that was known. */
  #add(
    o: Pick<
      ConstructorParameters<typeof DirectConnection>[0],
      'open' | 'handshake' | 'handshakeMs'
    >,
    ended: (why: string, member: string | undefined) => void,
  ): void {
    const { settings, maxPayload, traffic } = this.#context
    const listener = {
      opened: (connection: DirectConnection, member: string) => this.#opened(connection, member),
      message: (member: string, bytes: Uint8Array) =>
        this.#guard(() => traffic.message(member, bytes)),
      place: (member: string, head: Uint8Array, size: number) =>
        this.#guard(() => this.#place(member, head, size)),
      ended: (connection: DirectConnection, why: unknown) => {
        this.#ended(connection)
        ended(why === undefined ? 'the other end closed it' : messageOf(why), connection.member)
      },
    }
    try {
      this.#all.add(new DirectConnection({ ...o, times: settings, maxPayload, listener }))
    } catch (error) {
      // It was over before it began.
      this.#count('connect')
      ended(messageOf(error), undefined)
    }
  }

  #place(member: string, head: Uint8Array, size: number): Arrival | undefined {
    const arrival = this.#context.traffic.place(member, head, size)
    return arrival && { into: arrival.into, arrived: () => this.#guard(arrival.arrived) }
  }

  #opened(connection: DirectConnection, member: string): void {
    const former = this.#open.get(member)
    this.#open.set(member, connection)
    this.#context.events.directConnected(member, this.#context.direct.kind)
    // Its other end has given it up.
    former?.destroy('the member has connected anew')
  }

  #ended(connection: DirectConnection): void {
    const { member, hasLeft } = connection
    if (member === undefined) this.#count('connect')
    else this.#count(hasLeft ? 'closed' : 'broken')
    this.#all.delete(connection)
    if (member !== undefined) {
      if (this.#open.get(member) === connection) this.#open.delete(member)
      if (!this.#isClosed) this.#guard(() => this.#context.traffic.ended(member, hasLeft))
    }
    if (this.#all.size === 0) this.#whenEmpty?.()
  }

  #count(reason: FallbackReason): void {
    if (!this.#isClosed) this.#fallbacks.set(reason, (this.#fallbacks.get(reason) ?? 0) + 1)
  }

  /** Calls code of the receiver: an error there is no fault of the connection. */
  #guard<T>(act: () => T): T | undefined {
    try {
      return act()
    } catch (error) {
      this.#context.events.handlerFailed(ServeError.from(error))
      return undefined
    }
  }
}
