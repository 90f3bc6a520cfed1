import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Refused connections that may linger at the same time; beyond, they are dropped without an answer. */
const LINGERING_CONNECTIONS = 64
const LINGER_MS = 2000
const BODY = '{"error":"server is overloaded: too many connections"}'
const REFUSAL = [
  'HTTP/1.1 503 Service Unavailable',
  'content-type: application/json',
  'tutti-error-reason: OVERLOADED',
  'connection: close',
  `content-length: ${Buffer.byteLength(BODY)}`,
  '',
  BODY,
].join('\r\n')

/**
 * Bounds the open connections of a server that does not listen yet: one too many gets a whole 503 at once and never
 * reaches the HTTP parser, so an overloaded server says so instead of leaving clients in the backlog.
 *
 * @param onRefused - told of each refusal.
 */
export function limitConnections(
  server: Server,
  maxConnections: number,
  onRefused: () => void,
): void {
  server.maxConnections = maxConnections + LINGERING_CONNECTIONS
  server.on('drop', onRefused)
  const accepting = server.listeners('connection')
  server.removeAllListeners('connection')
  let open = 0
  server.on('connection', (socket: Socket) => {
    if (open >= maxConnections) {
      onRefused()
      refuse(socket)
      return
    }
    open += 1
    socket.once('close', () => {
      open -= 1
    })
    for (const accept of accepting) Reflect.apply(accept, server, [socket])
  })
}

function refuse(socket: Socket): void {
  socket.on('error', () => {
    // The refused client may be gone already; there is nothing to tell it.
  })
  socket.setTimeout(LINGER_MS, () => socket.destroy())
  // Unread bytes would turn the close into a reset, which can overtake the answer.
  socket.resume()
  socket.end(REFUSAL)
}
