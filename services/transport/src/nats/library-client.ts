import { Socket } from 'node:net'
import { type ConnectionOptions, connect, Events, type Msg, type NatsConnection } from 'nats'
import type { BrokerClient, ClientOptions, OutgoingBytes } from './broker-client.ts'
import { readBrokerFiles } from './broker-files.ts'
import { wantsTls } from './broker-options.ts'
import { messageOf, propertyOf } from './foreign-error.ts'
import { toAuthenticator } from './nats-keys.ts'
import { withOwnSockets } from './own-sockets.ts'

/** What came, and where; `bytes` is a view of the read buffer. */
export interface CameBytes {
  readonly subject: string
  readonly bytes: Uint8Array
}

/** A message of the broker as it came. */
export interface BrokerMessage extends CameBytes {
  /** Where an answer is expected. */
  readonly reply: string | undefined
  /** The broker says that there is no responder where we published with this subject as the reply. */
  readonly isNoResponder: boolean
}

export type HandleMessage = (message: BrokerMessage) => void

/** Connects the client of the library. */
export async function openLibraryClient(o: ClientOptions): Promise<BrokerClient<HandleMessage>> {
  const options = { ...toOptions(o), servers: [o.server] }
  return new LibraryClient(await withOwnSockets(() => connect(options)), o)
}

class LibraryClient implements BrokerClient<HandleMessage> {
  readonly closed: Promise<string>
  readonly #connection: NatsConnection
  readonly #o: ClientOptions

  constructor(connection: NatsConnection, o: ClientOptions) {
    this.#connection = connection
    this.#o = o
    this.closed = connection.closed().then((error) => messageOf(error ?? 'it was closed'))
    void this.#watch()
  }

  get server(): string {
    return this.#connection.getServer()
  }

  get maxPayload(): number {
    return this.#connection.info?.max_payload ?? 0
  }

  get isClosed(): boolean {
    return this.#connection.isClosed()
  }

  publish({ subject, bytes, head, reply, written }: OutgoingBytes): void {
    const whole = head === undefined ? bytes : Buffer.concat([head, bytes])
    this.#connection.publish(subject, whole, reply === undefined ? {} : { reply })
    written?.()
  }

  subscribe(subject: string, handler: HandleMessage): () => void {
    const subscription = this.#connection.subscribe(subject, {
      callback: (error, message) => {
        // Errors of subscriptions are permissions; the status says which. An exception in the library's callback would end
        // its reading without a word.
        if (error === null) this.#o.guard(() => handler(toBrokerMessage(message)))
      },
    })
    return () => subscription.unsubscribe()
  }

  flush(): Promise<void> {
    return this.#connection.flush()
  }

  async close(): Promise<void> {
    await this.#connection.flush()
    await this.#connection.close()
  }

  /** The library keeps its socket to itself; without it a connection whose member is silent cannot be given up at once. */
  destroy(): void {
    const socket = ['protocol', 'transport', 'socket'].reduce(propertyOf, this.#connection)
    if (socket instanceof Socket) socket.destroy()
    else if (!this.isClosed) void this.#connection.close()
  }

  /** Ends with the connection. */
  async #watch(): Promise<void> {
    for await (const status of this.#connection.status()) {
      const isComplaint = status.type === Events.Error || status.type === Events.LDM
      if (isComplaint) this.#o.complained(complaintOf(status))
    }
  }
}

/** Reads the files anew, because credentials are rotated. */
function toOptions({ broker, name, settings }: ClientOptions): ConnectionOptions {
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

function toBrokerMessage(message: Msg): BrokerMessage {
  const { subject, data, reply, headers } = message
  const isNoResponder = data.byteLength === 0 && headers?.code === 503
  return { subject, bytes: data, reply: reply === '' ? undefined : reply, isNoResponder }
}

function complaintOf(status: { readonly type: string; readonly data: unknown }): string {
  const context: unknown = Reflect.get(status, 'permissionContext')
  const where = context === undefined ? '' : ` ${JSON.stringify(context)}`
  return `${status.type} ${String(status.data)}${where}`
}
