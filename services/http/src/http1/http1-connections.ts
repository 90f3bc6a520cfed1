import type { Server, Socket } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import { readShared } from '../shared-reads.ts'
import { type ConnectionTimes, Http1Connection, type RequestHandler } from './http1-connection.ts'

/** How often connections are looked at, at least, for clients that take too long. */
const CHECK_MS = 5000

/** The connections that a server has accepted, with or without TLS. */
export class Http1Connections {
  readonly #open = new Set<Http1Connection>()

  constructor(server: Server, handler: RequestHandler, times: ConnectionTimes) {
    const event = server instanceof TlsServer ? 'secureConnection' : 'connection'
    server.on(event, (socket: Socket) => {
      const connection = new Http1Connection(socket, handler, times)
      this.#open.add(connection)
      // The close comes after it.
      socket.on('error', () => {})
      readShared(socket, (bytes) => connection.receive(bytes))
      socket.on('end', () => connection.receiveEnd())
      socket.once('close', () => {
        this.#open.delete(connection)
        connection.close()
      })
    })
    const everyMs = Math.min(
      CHECK_MS,
      times.headersTimeoutMs,
      times.requestTimeoutMs,
      times.keepAliveMs,
    )
    const timer = setInterval(() => this.#checkTimes(), everyMs).unref()
    server.once('close', () => clearInterval(timer))
  }

  /** Ends the connections without a request at once, and the others behind the answer that is to come. */
  stop(): void {
    for (const connection of this.#open) connection.stop()
  }

  /** Ends all connections as they stand. */
  destroy(): void {
    for (const connection of this.#open) connection.destroy()
  }

  #checkTimes(): void {
    const now = performance.now()
    for (const connection of this.#open) connection.checkTimes(now)
  }
}
