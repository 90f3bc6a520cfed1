import type { Socket } from 'node:net'
import type { Server, TLSSocket } from 'node:tls'
import type { Clock } from '@tutti/chassis'

/** Most time of a handshake, which takes two round trips and one signature. Node itself bounds only silence. */
const HANDSHAKE_MS = 10_000
/** Share of all connections that may be in their handshakes. */
const SHARE = 1 / 4

/**
 * Bounds the handshakes of a server, which count among its connections: each in time, and all in number. Beyond the number a
 * new connection ends the oldest that has not finished, so clients that connect and say nothing neither take the places of
 * those that speak nor keep new ones out.
 *
 * @param o.maxConnections - the server's bound; at most a quarter of it may be handshakes.
 * @returns a function that ends all handshakes, for a server that accepts no more connections.
 */
export function boundHandshakes(
  server: Server,
  { maxConnections, clock }: { readonly maxConnections: number; readonly clock: Clock },
): () => void {
  const most = Math.max(1, Math.floor(maxConnections * SHARE))
  const open = new Map<string, Socket>()
  server.prependListener('connection', (socket: Socket) => {
    const [oldest] = open
    if (open.size >= most && oldest !== undefined) end(...oldest)
    const ends = endsOf(socket)
    const stopTimer = clock.setTimer(HANDSHAKE_MS, () => end(ends, socket))
    open.set(ends, socket)
    socket.once('close', () => {
      stopTimer()
      if (open.get(ends) === socket) open.delete(ends)
    })
  })
  server.prependListener('secureConnection', (socket: TLSSocket) => open.delete(endsOf(socket)))
  function end(ends: string, socket: Socket): void {
    if (open.get(ends) !== socket) return
    open.delete(ends)
    socket.destroy()
  }
  return () => {
    for (const entry of open) end(...entry)
  }
}

/** Names the ends of a connection. The name is the same for the TLS over it, from which Node gives no way to the connection. */
function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
