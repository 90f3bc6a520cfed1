import { randomInt } from 'node:crypto'
import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { LinkSettings } from '../endpoint-settings.ts'
import type { BrokerOptions } from '../endpoints.ts'
import { messageOf } from '../foreign-error.ts'
import { OWN_BYTES, READ_BYTES } from '../sockets/placed-reader.ts'
import { describeConnectFailure } from './connect-failure.ts'
import { type BrokerMessage, placeWhole } from './whole-messages.ts'
import { type OutgoingBytes, openWireClient, type WireClient } from './wire-client.ts'
import type { PlaceMessage } from './wire-parser.ts'

/** The receiver of what happens to a connection. Nothing here may throw. */
export interface ConnectionListener {
  /** Called when the connection is there and the broker has all subscriptions. */
  connected(server: string): void
  disconnected(why: string): void
  /** Called when an attempt to connect has failed; another follows. */
  connectFailed(error: string): void
  /** Called when the broker has refused something, a subject for example, which its text names. */
  complained(what: string): void
  /** Called when a handler of ours has thrown: a bug. */
  handlerFailed(error: ServeError): void
}

/** The options of a connection. */
export interface ConnectionContext {
  readonly broker: BrokerOptions
  /** Name of the client that the broker's tools show. */
  readonly name: string
  readonly clock: Clock
  readonly settings: Pick<LinkSettings, 'connectMs'>
  readonly listener: ConnectionListener
}

/** Begins to connect, and tries until it succeeds or is closed. For small messages, many of which may be read at once. */
export function openBrokerConnection(o: ConnectionContext): BrokerConnection {
  return open(o, OWN_BYTES)
}

/** Connects as openBrokerConnection, for large messages, each of which is read to its place. */
export function openDataConnection(o: ConnectionContext): BrokerConnection {
  return open(o, READ_BYTES)
}

function open(o: ConnectionContext, readBytes: number): BrokerConnection {
  const connection = new BrokerConnection(o, readBytes)
  connection.start()
  return connection
}

/** Time between two attempts. With the 2 s of the library `nats` every outage would cost 2 s of service. */
const RECONNECT_MS = 100

interface Subscribed {
  readonly subject: string
  readonly place: PlaceMessage
  end: (() => void) | undefined
}

/**
 * One connection to the broker, which comes back by itself until it is closed: with a new client each time, which reads the
 * credentials anew. What is published while it is away is lost, and the publisher is told.
 */
export class BrokerConnection {
  readonly #context: ConnectionContext
  readonly #readBytes: number
  readonly #subscriptions = new Set<Subscribed>()
  #client: WireClient | undefined
  #isClosed = false
  #stopWaiting: (() => void) | undefined
  #attempt: Promise<void> = Promise.resolve()
  #unflushed = 0
  #sentBytes = 0
  /** Functions for flushes that are not answered: each ends the wait for one. A client that is lost ends them all. */
  readonly #unanswered = new Set<() => void>()
  #lastFailure = ''

  constructor(o: ConnectionContext, readBytes: number) {
    this.#context = o
    this.#readBytes = readBytes
  }

  get isConnected(): boolean {
    return this.#client !== undefined
  }

  /** Servers that the last attempt tried, and why it failed; '' if none has failed since the connection was there. */
  get failure(): string {
    return this.#lastFailure
  }

  /** Most bytes of one message, as the broker says; undefined while it is away. */
  get maxPayload(): number | undefined {
    return this.#client?.maxPayload
  }

  /** Bytes published since the last answered flush began. */
  get unflushedBytes(): number {
    return this.#unflushed
  }

  /** Bytes of all messages that were published, over reconnects. */
  get sentBytes(): number {
    return this.#sentBytes
  }

  start(): void {
    this.#attempt = this.#connect()
  }

  /** Sends a message to a subject, as `send`. */
  publish(subject: string, bytes: Uint8Array, reply?: string): boolean {
    return this.send({ subject, bytes, ...(reply !== undefined && { reply }) })
  }

  /** Sends a message. @returns false, and sends nothing, while the broker is away or if it is larger than the broker takes. */
  send(message: OutgoingBytes): boolean {
    const client = this.#client
    const size = message.bytes.byteLength + (message.head?.byteLength ?? 0)
    if (client === undefined || client.isClosed || size > client.maxPayload) return false
    client.publish(message)
    this.#unflushed += size
    this.#sentBytes += size
    return true
  }

  /** Subscribes to whole messages, over reconnects too. @returns ends the subscription. */
  subscribe(subject: string, take: (message: BrokerMessage) => void): () => void {
    return this.place(subject, placeWhole(take))
  }

  /** Subscribes to messages that are read to places, over reconnects too. @returns ends the subscription. */
  place(subject: string, place: PlaceMessage): () => void {
    const subscribed: Subscribed = { subject, place, end: undefined }
    this.#subscriptions.add(subscribed)
    if (this.#client !== undefined) begin(this.#client, subscribed)
    return () => {
      this.#subscriptions.delete(subscribed)
      subscribed.end?.()
    }
  }

  /** Waits until the broker has had all that was published. @throws ServeError STEP_UNAVAILABLE when it goes away before. */
  async flush(): Promise<void> {
    const client = this.#client
    if (client === undefined) throw away('the broker is away')
    const before = this.#unflushed
    await this.#untilFlushed(client)
    if (this.#client !== client) throw away('the broker went away')
    this.#unflushed -= before
  }

  /** Gives up the connection, which does not answer, and makes another. */
  abandon(why: string): void {
    const client = this.#client
    if (client !== undefined) this.#lost(client, why)
  }

  /** Sends what is published and closes. Waits for a silent broker no longer than `graceMs`. */
  async close(graceMs: number): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stopWaiting?.()
    await this.#attempt
    const client = this.#client
    this.#client = undefined
    if (client === undefined) return
    this.#endFlushes()
    const { promise: graceIsOver, resolve } = Promise.withResolvers<void>()
    const stopTimer = this.#context.clock.setTimer(graceMs, resolve)
    await Promise.race([endInOrder(client), graceIsOver])
    stopTimer()
    client.destroy()
    await client.closed
  }

  /**
   * Resolves once the client has flushed or is lost: no client settles a flush on a connection that ends. A race with one promise
   * of the connection would remember every flush for as long as the connection lasts.
   */
  #untilFlushed(client: WireClient): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#unanswered.add(resolve)
    client.flush().then(resolve, reject)
    return promise.finally(() => this.#unanswered.delete(resolve))
  }

  #endFlushes(): void {
    for (const end of this.#unanswered) end()
  }

  async #connect(): Promise<void> {
    while (!this.#isClosed) {
      try {
        const client = await this.#connectToAny()
        if (this.#isClosed) client.destroy()
        else await this.#take(client)
        return
      } catch (error) {
        this.#failed(error)
        await this.#pause()
      }
    }
  }

  /** Tries the servers one by one, each time from another one on, so that each has its say in the failure. */
  async #connectToAny(): Promise<WireClient> {
    const { broker, name, settings, listener } = this.#context
    const { servers } = broker
    const shared = {
      broker,
      name,
      settings,
      readBytes: this.#readBytes,
      complained: (what: string): void => this.#guard(() => listener.complained(what)),
      guard: this.#guard.bind(this),
    }
    const first = randomInt(servers.length)
    const failures: string[] = []
    for (const i of servers.keys()) {
      const at = (first + i) % servers.length
      const server = servers[at] ?? ''
      try {
        return await openWireClient({ ...shared, server })
      } catch (error) {
        failures[at] = `${server}: ${describeConnectFailure(error, broker, settings.connectMs)}`
      }
      if (this.#isClosed) break
    }
    throw away(failures.filter((failure) => failure !== undefined).join('; '))
  }

  async #take(client: WireClient): Promise<void> {
    for (const subscribed of this.#subscriptions) begin(client, subscribed)
    // Only when the broker has our subscriptions may others hear that we are here.
    await Promise.race([client.flush(), client.closed])
    if (client.isClosed) throw away('the broker went away')
    this.#client = client
    this.#unflushed = 0
    this.#lastFailure = ''
    void client.closed.then((why) => this.#lost(client, why))
    this.#guard(() => this.#context.listener.connected(client.server))
  }

  #lost(client: WireClient, why: string): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#endFlushes()
    for (const subscribed of this.#subscriptions) subscribed.end = undefined
    client.destroy()
    this.#guard(() => this.#context.listener.disconnected(why))
    if (!this.#isClosed) this.start()
  }

  /** Says a failure once, not ten times a second. */
  #failed(error: unknown): void {
    const text = messageOf(error)
    if (text === this.#lastFailure || this.#isClosed) return
    this.#lastFailure = text
    this.#guard(() => this.#context.listener.connectFailed(text))
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#context.clock.setTimer(RECONNECT_MS, resolve)
      this.#stopWaiting = () => {
        stop()
        resolve()
      }
      if (this.#isClosed) this.#stopWaiting()
    })
  }

  #guard<T>(act: () => T): T | undefined {
    try {
      return act()
    } catch (error) {
      this.#context.listener.handlerFailed(ServeError.from(error))
      return undefined
    }
  }
}

function begin(client: WireClient, subscribed: Subscribed): void {
  subscribed.end = client.subscribe(subscribed.subject, subscribed.place)
}

async function endInOrder(client: WireClient): Promise<void> {
  try {
    await client.close()
  } catch {
    // The broker went away meanwhile: nothing is left to close.
  }
}

function away(text: string): ServeError {
  return new ServeError('STEP_UNAVAILABLE', text)
}
