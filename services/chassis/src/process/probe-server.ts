import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { TlsOptions } from 'node:tls'

/** Bound on open connections: more than twice the 511 that Node lets wait at the socket while the process is busy. */
export const PROBE_CONNECTIONS = 1024
/** Most time of a request: a probe or a scrape is one line and a few headers. */
const REQUEST_TIMEOUT_MS = 5000
const CHECK_MS = 1000
/** Ends a connection whose client does not read its answer. */
const SILENCE_TIMEOUT_MS = 30_000

export interface ProbeServerOptions {
  readonly maxConnections?: number
  readonly tls?: TlsOptions | undefined
}

/**
 * Makes an HTTP server for probes and metrics. Anybody on the network may reach it, and it must not stop answering: a process
 * whose probes fail is restarted.
 *
 * A new connection is never refused. Beyond `maxConnections` the server closes the oldest connection instead. If it refused new
 * ones, clients that connect and say nothing could keep the kubelet out. A bound for each address does not help where a client
 * has many addresses or shares a proxy with the kubelet. To harm a probe, clients must open `maxConnections` connections between
 * the probe's connection and its request. That is more than can wait at the socket.
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
