import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { ClusterAccess, Credentials } from './cluster-access.ts'
import type { HttpMethod } from './transport.ts'

/** Requests under way at once; more wait. A server takes 400 reads and 200 writes of all its clients by default. */
const MOST_CONNECTIONS = 32
/** A server gives idle connections up after 90 s or more: ours go first, so that no request meets one that is just closing. */
const IDLE_CONNECTION_MS = 60_000
const KEEP_ALIVE_MS = 30_000

export interface ConnectionRequest {
  readonly method: HttpMethod
  /** Path with its query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | number>>
  /** True for a response that goes on, which gets a connection outside of the pool that requests share. */
  readonly isStream: boolean
}

/** The connections to an API server. With HTTP/1.1, a long list delays no other request, and closing a socket ends a watch. */
export interface ApiServerConnections {
  /** Opens a request with the credentials and their header. The caller ends the request. */
  open(o: ConnectionRequest, credentials: Credentials): ClientRequest
  close(): void
}

interface Agents {
  readonly key: string
  readonly requests: HttpAgent
  readonly streams: HttpAgent
}

/** Makes a pool that connects when needed. Credentials with another certificate or authority get new connections. */
export function createConnections(access: ClusterAccess): ApiServerConnections {
  const { server } = access
  const isSecure = server.protocol === 'https:'
  const prefix = server.pathname.replace(/\/+$/, '')
  const send = isSecure ? httpsRequest : httpRequest
  let agents: Agents | undefined
  const agentsFor = (credentials: Credentials): Agents => {
    const { ca, cert, key } = credentials
    const wanted = JSON.stringify([ca, cert, key])
    if (agents?.key === wanted) return agents
    if (agents !== undefined) dropIdle(agents)
    agents = { key: wanted, ...makeAgents(access, isSecure, credentials) }
    return agents
  }
  return {
    open: (o, credentials) => {
      const { requests, streams } = agentsFor(credentials)
      const { authorization } = credentials
      return send({
        host: server.hostname.replace(/^\[|\]$/g, ''),
        port: server.port === '' ? (isSecure ? 443 : 80) : Number(server.port),
        method: o.method,
        path: prefix + o.path,
        agent: o.isStream ? streams : requests,
        headers: { ...o.headers, ...(authorization === undefined ? {} : { authorization }) },
      })
    },
    close: () => {
      agents?.requests.destroy()
      agents?.streams.destroy()
      agents = undefined
    },
  }
}

function makeAgents(
  access: ClusterAccess,
  isSecure: boolean,
  credentials: Credentials,
): Omit<Agents, 'key'> {
  const kept = {
    keepAlive: true,
    keepAliveMsecs: KEEP_ALIVE_MS,
    maxSockets: MOST_CONNECTIONS,
    timeout: IDLE_CONNECTION_MS,
  }
  if (!isSecure) return { requests: new HttpAgent(kept), streams: new HttpAgent() }
  const { ca, cert, key } = credentials
  const rejectUnauthorized = access.isServerUnverified !== true
  const tls = { ca, cert, key, servername: access.serverName, rejectUnauthorized }
  return { requests: new HttpsAgent({ ...kept, ...tls }), streams: new HttpsAgent(tls) }
}

/** Closes idle connections: what is under way ends by itself, with the credentials that it began with. */
function dropIdle(agents: Agents): void {
  for (const sockets of Object.values(agents.requests.freeSockets)) {
    for (const socket of sockets ?? []) socket.destroy()
  }
}
