import { randomInt } from 'node:crypto'
import { Socket } from 'node:net'
import type { Clock } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  Events,
  jwtAuthenticator,
  type Msg,
  type NatsConnection,
  nkeyAuthenticator,
} from 'nats'
import type { BrokerOptions } from '../endpoints.ts'
import { type BrokerFiles, readBrokerFiles } from './broker-files.ts'
import { wantsTls } from './broker-options.ts'
import { describeConnectFailure } from './connect-failure.ts'
import { messageOf, propertyOf } from './foreign-error.ts'
import { withOwnSockets } from './own-sockets.ts'

/** A message as it came; `bytes` is a view of the read buffer. */
export interface BrokerMessage {
  readonly subject: string
  readonly bytes: Uint8Array
  /** Where an answer is expected. */
  readonly reply: string | undefined
  /** The broker says that there is no responder where we published with this subject as the reply. */
  readonly isNoResponder: boolean
}

/** What happens to a connection. Nothing here may throw. */
export interface ConnectionListener {
  /** All subscriptions are with the broker. */
  connected(server: string): void
  disconnected(why: string): void
  /** An attempt failed; another follows. */
  connectFailed(error: string): void
  /** The broker refused something that it names, a subject say. */
  complained(what: string): void
  /** A handler of ours threw: a bug. */
  handlerFailed(error: ServeError): void
}

/** How one connection is made. */
export interface ConnectionSettings {
  readonly reconnectMs: number
  readonly connectMs: number
  readonly keepAliveMs: number
}

/** What a connection is made from. */
export interface ConnectOptions {
  readonly broker: BrokerOptions
  /** Shown by the broker's tools. */
  readonly name: string
  readonly clock: Clock
  readonly settings: ConnectionSettings
  readonly listener: ConnectionListener
}

/** Begins to connect, and goes on until it succeeds or is closed. */
export function openBrokerConnection(o: ConnectOptions): BrokerConnection {
  const connection = new BrokerConnection(o)
  connection.start()
  return connection
}

interface Subscribed {
  readonly subject: string
  readonly handler: (message: BrokerMessage) => void
  end: (() => void) | undefined
}

/**
 * One connection to the broker, which comes back by itself until it is closed. Reconnects with a new client each time, instead of letting the library do it: the library keeps what is published
 * while it is away and then drops it without a word, reads credentials once, and waits for a silent socket to take its last
 * bytes before it gives it up.
 */
export class BrokerConnection {
  readonly #o: ConnectOptions
  readonly #subscriptions = new Set<Subscribed>()
  #client: NatsConnection | undefined
  #isClosed = false
  #stopWaiting: (() => void) | undefined
  #attempt: Promise<void> = Promise.resolve()
  #unflushed = 0
  /** Of flushes that are not answered: each ends the wait for it. A client that is lost ends them all. */
  readonly #unanswered = new Set<() => void>()
  #lastFailure = ''

  constructor(o: ConnectOptions) {
    this.#o = o
  }

  get isConnected(): boolean {
    return this.#client !== undefined
  }

  /** Which servers the last attempt tried, and why it failed; '' if none failed since the connection was there. */
  get failure(): string {
    return this.#lastFailure
  }

  /** Bytes that one message may have, as the broker says; undefined while it is away. */
  get maxPayload(): number | undefined {
    return this.#client?.info?.max_payload
  }

  /** Bytes published since the last answered flush began. */
  get unflushedBytes(): number {
    return this.#unflushed
  }

  start(): void {
    this.#attempt = this.#connect()
  }

  /** @returns false, and sends nothing, while the broker is away or if the message is larger than it takes. */
  publish(subject: string, bytes: Uint8Array, reply?: string): boolean {
    const client = this.#client
    if (client === undefined || client.isClosed()) return false
    if (bytes.byteLength > (this.maxPayload ?? 0)) return false
    client.publish(subject, bytes, reply === undefined ? {} : { reply })
    this.#unflushed += bytes.byteLength
    return true
  }

  /** Lasts over reconnects. @returns ends it. */
  subscribe(subject: string, handler: (message: BrokerMessage) => void): () => void {
    const subscribed: Subscribed = { subject, handler, end: undefined }
    this.#subscriptions.add(subscribed)
    if (this.#client !== undefined) this.#begin(this.#client, subscribed)
    return () => {
      this.#subscriptions.delete(subscribed)
      subscribed.end?.()
    }
  }

  /** Resolves when the broker has had all that was published. @throws ServeError STEP_UNAVAILABLE when it goes away before. */
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
    const stopTimer = this.#o.clock.setTimer(graceMs, resolve)
    await Promise.race([endInOrder(client), graceIsOver])
    stopTimer()
    destroySocket(client)
    await client.closed()
  }

  /**
   * Until the client has flushed or is lost: the library never settles a flush on a connection that ends. A race with one promise of
   * the connection would remember every flush for as long as the connection lasts.
   */
  #untilFlushed(client: NatsConnection): Promise<void> {
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
        if (this.#isClosed) await client.close()
        else await this.#take(client)
        return
      } catch (error) {
        this.#failed(error)
        await this.#pause()
      }
    }
  }

  /** Tries the servers one by one, each time from another one on, so that each has its say in the failure. */
  async #connectToAny(): Promise<NatsConnection> {
    const { broker, settings } = this.#o
    const options = this.#clientOptions()
    const { servers } = broker
    const first = randomInt(servers.length)
    const failures: string[] = []
    for (const i of servers.keys()) {
      const at = (first + i) % servers.length
      const server = servers[at] ?? ''
      try {
        return await withOwnSockets(() => connect({ ...options, servers: [server] }))
      } catch (error) {
        failures[at] = `${server}: ${describeConnectFailure(error, broker, settings.connectMs)}`
      }
      if (this.#isClosed) break
    }
    throw away(failures.filter((failure) => failure !== undefined).join('; '))
  }

  async #take(client: NatsConnection): Promise<void> {
    for (const subscribed of this.#subscriptions) this.#begin(client, subscribed)
    // Only when the broker has our subscriptions may others hear that we are here.
    await Promise.race([client.flush(), client.closed()])
    if (client.isClosed()) throw away('the broker went away')
    this.#client = client
    this.#unflushed = 0
    this.#lastFailure = ''
    void this.#watch(client)
    this.#guard(() => this.#o.listener.connected(client.getServer()))
  }

  /** Ends with the client. */
  async #watch(client: NatsConnection): Promise<void> {
    void client.closed().then((error) => this.#lost(client, messageOf(error ?? 'it was closed')))
    for await (const status of client.status()) {
      const isComplaint = status.type === Events.Error || status.type === Events.LDM
      if (isComplaint) this.#guard(() => this.#o.listener.complained(complaintOf(status)))
    }
  }

  #lost(client: NatsConnection, why: string): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#endFlushes()
    for (const subscribed of this.#subscriptions) subscribed.end = undefined
    destroySocket(client)
    this.#guard(() => this.#o.listener.disconnected(why))
    if (!this.#isClosed) this.start()
  }

  /** Says a failure once, not ten times a second. */
  #failed(error: unknown): void {
    const text = messageOf(error)
    if (text === this.#lastFailure || this.#isClosed) return
    this.#lastFailure = text
    this.#guard(() => this.#o.listener.connectFailed(text))
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#o.clock.setTimer(this.#o.settings.reconnectMs, resolve)
      this.#stopWaiting = () => {
        stop()
        resolve()
      }
      if (this.#isClosed) this.#stopWaiting()
    })
  }

  #begin(client: NatsConnection, subscribed: Subscribed): void {
    const subscription = client.subscribe(subscribed.subject, {
      callback: (error, message) => {
        // Errors of subscriptions are permissions; the status says which.
        if (error === null) this.#guard(() => subscribed.handler(toBrokerMessage(message)))
      },
    })
    subscribed.end = () => subscription.unsubscribe()
  }

  /** An exception in the library's callback would end its reading without a word. */
  #guard(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.#o.listener.handlerFailed(ServeError.from(error))
    }
  }

  /** Reads the files anew, because credentials are rotated. */
  #clientOptions(): ConnectionOptions {
    const { broker, name, settings } = this.#o
    const files = readBrokerFiles(broker)
    const authenticator = toAuthenticator(files)
    return {
      name,
      reconnect: false,
      ignoreClusterUpdates: true,
      pingInterval: settings.keepAliveMs,
      maxPingOut: 2,
      timeout: settings.connectMs,
      noAsyncTraces: true,
      ...(authenticator !== undefined && { authenticator }),
      ...(broker.user !== undefined && { user: broker.user, pass: broker.password?.() ?? '' }),
      ...(broker.token !== undefined && { token: broker.token() }),
      ...(wantsTls(broker) && { tls: { ...files.tls } }),
    }
  }
}

function toAuthenticator({ credentials, nkeySeed }: BrokerFiles): Authenticator | undefined {
  if (credentials !== undefined) {
    return jwtAuthenticator(credentials.jwt, toBytes(credentials.seed))
  }
  return nkeySeed === undefined ? undefined : nkeyAuthenticator(toBytes(nkeySeed))
}

function toBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function toBrokerMessage(message: Msg): BrokerMessage {
  const { subject, data, reply, headers } = message
  const isNoResponder = data.byteLength === 0 && headers?.code === 503
  return { subject, bytes: data, reply: reply === '' ? undefined : reply, isNoResponder }
}

async function endInOrder(client: NatsConnection): Promise<void> {
  try {
    await client.flush()
    await client.close()
  } catch {
    // The broker went away meanwhile: nothing is left to close.
  }
}

/** The library keeps its socket to itself; without it a connection whose member is silent cannot be given up at once. */
function destroySocket(client: NatsConnection): void {
  const socket = ['protocol', 'transport', 'socket'].reduce(propertyOf, client)
  if (socket instanceof Socket) socket.destroy()
  else if (!client.isClosed()) void client.close()
}

function complaintOf(status: { readonly type: string; readonly data: unknown }): string {
  const context: unknown = Reflect.get(status, 'permissionContext')
  const where = context === undefined ? '' : ` ${JSON.stringify(context)}`
  return `${status.type} ${String(status.data)}${where}`
}

function away(text: string): ServeError {
  return new ServeError('STEP_UNAVAILABLE', text)
}
