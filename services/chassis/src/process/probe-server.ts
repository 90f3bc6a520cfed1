import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { TlsOptions } from 'node:tls'

/** More than twice what the system keeps waiting while the process is busy (Node asks for 511). */
export const PROBE_CONNECTIONS = 1024
/** A probe or a scrape is one line and a few headers. */
const REQUEST_TIMEOUT_MS = 5000
const CHECK_MS = 1000
/** Ends a connection whose client does not read its answer. */
const SILENCE_TIMEOUT_MS = 30_000

export interface ProbeServerOptions {
  readonly maxConnections?: number
  readonly tls?: TlsOptions | undefined
}

/**
 * Makes an HTTP server for probes and metrics that anybody on the network may reach, and that must not stop answering: a
 * process whose probes fail is restarted.
 *
 * A new connection is never refused: beyond the bound the oldest one ends for it, whatever it does. A bound that refuses
 * lets clients that connect and say nothing keep the kubelet out, and a bound for each address does not hold where a client
 * has many of them or stands behind the same proxy as the kubelet. Here it takes `maxConnections` new connections between a
 * probe's connection and its request to harm it, which is more than can wait at the socket, be they from one address or many.
 * Slow or silent clients harm only themselves.
 *
 * @param o.tls - for HTTPS; absent: HTTP. The caller bounds the time of a handshake.
 */
export function createProbeServer(
  onRequest: RequestListener,
  { maxConnections = PROBE_CONNECTIONS, tls }: ProbeServerOptions = {},
): Server {
  const options = {
    headersTimeout: REQUEST_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_MS,
    maxHeaderSize: 8192,
  }
  const server =
    tls === undefined
      ? createServer(options, onRequest)
      : createTlsServer({ ...options, ...tls }, onRequest)
  server.setTimeout(SILENCE_TIMEOUT_MS)
  const connections = new Set<{ destroy(): unknown }>()
  server.on('connection', (socket) => {
    const [oldest] = connections
    if (connections.size >= maxConnections && oldest !== undefined) {
      connections.delete(oldest)
      oldest.destroy()
    }
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  return server
}
