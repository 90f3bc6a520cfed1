import type { Http2SecureServer, Http2Server, Http2Session } from 'node:http2'
import { Server, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Server as TlsServer } from 'node:tls'
import type { Clock } from '@tutti/chassis'
import { boundConnections, type ConnectionBounds, connectionName } from '../connection-bounds.ts'
import { type ConnectionLife, liveBy } from './connection-life.ts'
import type { GrpcLog } from './log-events.ts'
import type { ServerCall } from './server-call.ts'
import { writeShutdownNotice } from './shutdown-notice.ts'

export interface ConnectionsOptions extends ConnectionBounds, ConnectionLife {
  readonly clock: Clock
  readonly calls: Iterable<ServerCall>
  readonly windowBytes: number
  readonly log: GrpcLog
}

/** For the last frames of a connection on their way to its client. */
const LINGER_MS = 500
/** How long calls may be on their way that a client began before it heard that the server stops. */
const NOTICE_TIMEOUT_MS = 1000
/** The listening socket of a server and the connections that it accepted. */
export class Connections {
  readonly #server: Http2Server | Http2SecureServer
  readonly #sessions = new Map<Http2Session, Socket>()
  readonly #sockets = new Set<Socket>()
  readonly #closed: Promise<unknown>
  #stopped: Promise<unknown> | undefined

  constructor(server: Http2Server | Http2SecureServer, o: ConnectionsOptions) {
    this.#server = server
    this.#closed = new Promise<void>((resolve) => server.once('close', resolve))
    let accepted: Socket
    const event = server instanceof TlsServer ? 'secureConnection' : 'connection'
    // Before Node's own listener, which makes the session of the connection.
    server.prependListener(event, (socket: Socket) => {
      accepted = socket
      this.#sockets.add(socket)
      // After a GOAWAY Node ends the socket and waits for its client to do so too, for ever.
      socket.once('finish', () => setTimeout(() => socket.destroy(), LINGER_MS).unref())
      socket.once('close', () => this.#sockets.delete(socket))
    })
    server.on('session', (session) => {
      this.#sessions.set(session, accepted)
      session.once('close', () => this.#sessions.delete(session))
      // Otherwise it caps all streams of the connection at 64 KiB per round trip.
      session.setLocalWindowSize(o.windowBytes)
      const socket = accepted
      liveBy(o, {
        session,
        clock: o.clock,
        hasCalls: () => hasCalls(session, o.calls),
        stop: () => void stop(session, socket),
      })
    })
    boundConnections(server, {
      ...o,
      busy: () => this.#busy(o.calls),
      end: (socket) => this.#end(socket),
      onRefused: () => o.log.connectionDropped(o.maxConnections),
    })
  }

  /**
   * Takes no more connections, and tells the clients of those that there are to open no more calls on them. Resolves when
   * no call is on its way any more.
   */
  stopAccepting(): Promise<unknown> {
    if (this.#stopped === undefined) {
      // The server's own close would end the sessions too.
      Server.prototype.close.call(this.#server)
      this.#stopped = Promise.all(
        [...this.#sessions].map(([session, socket]) => stop(session, socket)),
      )
    }
    return this.#stopped
  }

  /** Ends all connections as they stand. Resolves when every socket is closed. */
  async close(): Promise<void> {
    void this.stopAccepting()
    // A caller that waited for the last stream to close comes here while Node is about to write that stream's last frames.
    // Destroyed at this point, a session ends its socket first, and they are lost.
    await nextTurn()
    for (const session of this.#sessions.keys()) session.destroy()
    // A destroyed session only ends its socket: a client that never says goodbye would hold the server for ever.
    const cut = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy()
    }, LINGER_MS)
    await this.#closed
    clearTimeout(cut)
  }

  /** The connections on which a request is in work. */
  #busy(calls: Iterable<ServerCall>): Set<string> {
    const names = new Set<string>()
    for (const { ticket, stream } of calls) {
      const socket = stream.session && this.#sessions.get(stream.session)
      if (ticket.hasPlace && socket !== undefined) names.add(connectionName(socket))
    }
    return names
  }

  #end(socket: Socket): void {
    const name = connectionName(socket)
    for (const [session, its] of this.#sessions) if (connectionName(its) === name) session.destroy()
    // Its client may never say goodbye.
    setImmediate(() => socket.destroy())
  }
}

function hasCalls(session: Http2Session, calls: Iterable<ServerCall>): boolean {
  for (const { stream } of calls) if (stream.session === session) return true
  return false
}

/** Lets a session end with the calls that its client had begun when it read the notice. Resolves when all of these have come. */
function stop(session: Http2Session, socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      session.close()
      resolve()
    }
    const timer = setTimeout(end, NOTICE_TIMEOUT_MS)
    // Nothing may go out before our settings: a client that has not confirmed them may not have them.
    if (session.destroyed || session.pendingSettingsAck) return end()
    // Then calls on their way are dropped, and the client knows that they were not begun.
    if (!writeShutdownNotice(socket)) return end()
    // The answer to the ping comes behind all that the client sent before it read the notice.
    session.ping(end)
  })
}
