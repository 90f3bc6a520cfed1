import type { Server, Socket } from 'node:net'
import { TLSSocket, Server as TlsServer } from 'node:tls'
import type { Clock } from '@tutti/chassis'
import { type Http2Bounds, type Http2Connection, openHttp2Connection } from '@tutti/http'
import { boundConnections, connectionName, type ListenerBounds } from '@tutti/serving'
import type { GrpcLog } from '../call/log-events.ts'
import { type ConnectionLife, liveBy } from './connection-life.ts'
import type { ServerCalls } from './server-calls.ts'

export interface ConnectionsOptions extends ListenerBounds, ConnectionLife {
  readonly clock: Clock
  readonly calls: Pick<ServerCalls, 'accept' | typeof Symbol.iterator>
  /** The bounds of each connection. */
  readonly http2: Http2Bounds
  readonly log: GrpcLog
}

/** How long calls may be on their way that a client began before it heard that the server stops. */
const NOTICE_TIMEOUT_MS = 1000
/** For who comes over TLS and does not choose HTTP/2. */
const NO_HTTP2 = 'HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n'
/** For a client without HTTP/2 to read that. */
const LINGER_MS = 500

/** The listening socket of a server and the connections that it accepted. */
export class Connections {
  readonly #server: Server
  readonly #options: ConnectionsOptions
  readonly #open = new Map<Socket, Http2Connection>()
  readonly #closed: Promise<unknown>
  #stopped: Promise<unknown> | undefined

  constructor(server: Server, o: ConnectionsOptions) {
    this.#server = server
    this.#options = o
    this.#closed = new Promise<void>((resolve) => server.once('close', resolve))
    const event = server instanceof TlsServer ? 'secureConnection' : 'connection'
    server.on(event, (socket: Socket) => this.#accept(socket))
    boundConnections(server, {
      ...o,
      busy: () => this.#busy(),
      end: (socket) => this.#end(socket),
      onRefused: () => o.log.connectionDropped(o.maxConnections),
    })
  }

  /**
   * Accepts no more connections, and tells the clients of open ones to begin no more calls. Resolves when every call that they
   * had begun before has arrived.
   */
  stopAccepting(): Promise<unknown> {
    if (this.#stopped === undefined) {
      this.#server.close()
      this.#stopped = Promise.all(
        [...this.#open].map(([socket, connection]) => stop(connection, socket)),
      )
    }
    return this.#stopped
  }

  /** Ends all connections as they stand. Resolves when every socket is closed. */
  async close(): Promise<void> {
    void this.stopAccepting()
    for (const connection of this.#open.values()) connection.end()
    await this.#closed
  }

  #accept(socket: Socket): void {
    if (socket instanceof TLSSocket && socket.alpnProtocol !== 'h2') return refuse(socket)
    const { calls, http2, clock } = this.#options
    const connection = openHttp2Connection(socket, {
      ...http2,
      handler: {
        stream: calls.accept,
        pinged: () => onPing(),
      },
    })
    const onPing = liveBy(this.#options, {
      connection,
      socket,
      clock,
      stop: () => void stop(connection, socket),
    })
    this.#open.set(socket, connection)
    socket.once('close', () => this.#open.delete(socket))
  }

  /** The connections on which a request is in work. */
  #busy(): Set<string> {
    const names = new Set<string>()
    for (const { ticket, socket } of this.#options.calls) {
      if (ticket.hasPlace) names.add(connectionName(socket))
    }
    return names
  }

  #end(socket: Socket): void {
    const name = connectionName(socket)
    for (const [its, connection] of this.#open) {
      if (connectionName(its) === name) connection.destroy()
    }
    socket.destroy()
  }
}

/**
 * Lets a connection end with the calls that its client had begun when it read the notice. Resolves when all of these have come.
 */
function stop(connection: Http2Connection, socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      connection.stop()
      resolve()
    }
    const timer = setTimeout(end, NOTICE_TIMEOUT_MS)
    if (connection.isClosed || !connection.isConfirmed) return end()
    socket.once('close', end)
    connection.announceStop()
    // The answer to the ping comes behind all that the client sent before it read the notice.
    connection.ping(end)
  })
}

function refuse(socket: Socket): void {
  socket.on('error', () => {})
  socket.end(NO_HTTP2)
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
  socket.once('close', () => clearTimeout(timer))
  socket.resume()
}
