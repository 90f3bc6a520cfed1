import type { Http2Server, ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { setSessionWindow } from './grpc-internals.ts'
import type { GrpcLog } from './log-events.ts'

export interface ConnectionsOptions {
  readonly maxConnections: number
  readonly windowBytes: number
  readonly log: GrpcLog
}

/** For the last frames of a connection on their way to its client. */
const LINGER_MS = 500

/** The listening sockets of one server and the connections that they accepted. */
export class Connections {
  readonly #servers: readonly Http2Server[]
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #sockets = new Set<Socket>()
  readonly #closed: Promise<unknown>
  #isListening = true

  constructor(servers: readonly Http2Server[], o: ConnectionsOptions) {
    this.#servers = servers
    this.#closed = Promise.all(servers.map(whenClosed))
    for (const server of servers) {
      // Beyond the bound a connection is dropped as it comes: it holds nothing yet, so there is nobody to answer.
      server.maxConnections = o.maxConnections
      server.on('drop', () => o.log.connectionDropped(o.maxConnections))
      // Without a listener an accept that fails (no file descriptor left) would end the process.
      server.on('error', (error: Error) => o.log.listenerFailed(error))
      server.on('connection', (socket: Socket) => {
        this.#sockets.add(socket)
        socket.once('close', () => this.#sockets.delete(socket))
      })
      server.on('session', (session) => {
        this.#sessions.add(session)
        session.once('close', () => this.#sessions.delete(session))
        setSessionWindow(session, o.windowBytes)
      })
    }
  }

  /** Takes no more connections, and tells the clients of those that there are to open no more calls on them. */
  stopAccepting(): void {
    if (this.#isListening) for (const server of this.#servers) server.close()
    this.#isListening = false
    for (const session of this.#sessions) session.close()
  }

  /** Ends all connections as they stand. Resolves when every socket is closed. */
  async close(): Promise<void> {
    this.stopAccepting()
    // Whoever waited for the last stream to close comes here while Node is about to write that stream's last frames.
    // Destroyed at this point, a session ends its socket first, and they are lost.
    await nextTurn()
    for (const session of this.#sessions) session.destroy()
    // A destroyed session only ends its socket: a client that never says goodbye would hold the server for ever.
    const linger = new AbortController()
    const cut = pause(LINGER_MS, undefined, { signal: linger.signal }).then(
      () => this.#sockets.forEach((socket) => socket.destroy()),
      () => undefined,
    )
    await this.#closed
    linger.abort()
    await cut
  }
}

function whenClosed(server: Http2Server): Promise<void> {
  return new Promise((resolve) => server.once('close', resolve))
}
