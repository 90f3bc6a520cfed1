import type { Http2Server, ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { GrpcLog } from './log-events.ts'

export interface ConnectionsOptions {
  readonly maxConnections: number
  readonly windowBytes: number
  readonly keepaliveMs: number
  readonly log: GrpcLog
}

/** For the last frames of a connection on their way to its client. */
const LINGER_MS = 500
/** How long a client may take to answer a ping; not longer than the time from one to the next. */
const PING_TIMEOUT_MS = 20_000

/** The listening socket of a server and the connections that it accepted. */
export class Connections {
  readonly #server: Http2Server
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #sockets = new Set<Socket>()
  readonly #closed: Promise<unknown>
  #isListening = true

  constructor(server: Http2Server, o: ConnectionsOptions) {
    this.#server = server
    this.#closed = new Promise<void>((resolve) => server.once('close', resolve))
    // Beyond the bound a connection is dropped as it comes: it holds no call yet that could be answered.
    server.maxConnections = o.maxConnections
    server.on('drop', () => o.log.connectionDropped(o.maxConnections))
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
    })
    server.on('session', (session) => {
      this.#sessions.add(session)
      session.once('close', () => this.#sessions.delete(session))
      // Otherwise it caps all streams of the connection at 64 KiB per round trip.
      session.setLocalWindowSize(o.windowBytes)
      keepAlive(session, o.keepaliveMs)
    })
  }

  /** Takes no more connections, and tells the clients of those that there are to open no more calls on them. */
  stopAccepting(): void {
    if (this.#isListening) this.#server.close()
    this.#isListening = false
    for (const session of this.#sessions) session.close()
  }

  /** Ends all connections as they stand. Resolves when every socket is closed. */
  async close(): Promise<void> {
    this.stopAccepting()
    // A caller that waited for the last stream to close comes here while Node is about to write that stream's last frames.
    // Destroyed at this point, a session ends its socket first, and they are lost.
    await nextTurn()
    for (const session of this.#sessions) session.destroy()
    // A destroyed session only ends its socket: a client that never says goodbye would hold the server for ever.
    const cut = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy()
    }, LINGER_MS)
    await this.#closed
    clearTimeout(cut)
  }
}

/**
 * Pings a client again and again, and drops the connection if it does not answer. Node's own timeout of a session would spare
 * busy ones the ping, but is set back several times for each call.
 */
function keepAlive(session: ServerHttp2Session, keepaliveMs: number): void {
  let drop: NodeJS.Timeout | undefined
  const ping = (): void => {
    if (session.destroyed) return
    drop = setTimeout(() => session.destroy(), Math.min(keepaliveMs, PING_TIMEOUT_MS)).unref()
    session.ping(() => clearTimeout(drop))
  }
  const timer = setInterval(ping, keepaliveMs).unref()
  session.once('close', () => {
    clearInterval(timer)
    clearTimeout(drop)
  })
}
