import type { Server, Socket } from 'node:net'
import type { Clock } from '@tutti/chassis'

export interface ListenerBounds {
  /** Most open connections. A further one ends the connection that is idle longest, or itself if all have requests in work. */
  readonly maxConnections: number
  /** Most open connections of one address, with the same rule; 0 is no bound. */
  readonly maxConnectionsPerAddress: number
}

export interface BoundConnectionsOptions extends ListenerBounds {
  readonly clock: Pick<Clock, 'now' | 'setTimer'>
  /** Function that returns the names, as `connectionName` makes them, of the connections with a request in work. */
  readonly busy: () => ReadonlySet<string>
  readonly end: (socket: Socket) => void
  /** Callback for each new connection that is ended. */
  readonly onRefused: () => void
}

interface Connection {
  readonly name: string
  readonly address: string
  readonly socket: Socket
  /** Bytes of both directions, when it was looked at. */
  bytes: number
  /** Time of the last look that found new bytes, sent or received. */
  movedAt: number
}

/** How often connections are looked at, so that it is known how long they have been idle. */
const LOOK_MS = 5000
/** Least time between two looks at connections, however many new ones come: a look goes through all calls. */
const LOOK_AGAIN_MS = 50
/** Connections beyond the bound that may be open for a moment, because they are about to end. */
const SLACK = 256

/** Names a connection; a TLS socket and the socket below it have the same name. */
export function connectionName(socket: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${socket.remoteAddress} ${socket.remotePort}`
}

/** Bounds the connections of a server. To refuse the newest would let clients that only connect keep all others out. */
export function boundConnections(server: Server, o: BoundConnectionsOptions): void {
  const { clock, maxConnections, maxConnectionsPerAddress } = o
  const connections = new Map<Socket, Connection>()
  const countOf = new Map<string, number>()
  let idle: Connection[] = []
  let lookedAt = Number.NEGATIVE_INFINITY
  /** The number of connections at that time. */
  let lookedAtCount = 0

  const look = (): void => {
    lookedAt = clock.now()
    lookedAtCount = connections.size
    for (const connection of connections.values()) {
      if (!hasMoved(connection)) continue
      connection.bytes = bytesOf(connection.socket)
      connection.movedAt = lookedAt
    }
    const busy = o.busy()
    idle = [...connections.values()]
      .filter(({ name }) => !busy.has(name))
      .toSorted((a, b) => a.movedAt - b.movedAt)
  }
  /** Ends one of those that are idle for the new connection, or else the new one. */
  const endFor = (added: Connection, isWanted: (connection: Connection) => boolean): void => {
    // There are more now: the look does not know them all.
    const isOld = connections.size > lookedAtCount || clock.now() - lookedAt >= LOOK_AGAIN_MS
    if (isOld) look()
    // A connection that has had bytes since the look may have a request by now.
    const longest = idle.find((it) => connections.has(it.socket) && !hasMoved(it) && isWanted(it))
    const { socket } = longest ?? added
    forget(socket)
    if (longest === undefined) o.onRefused()
    o.end(socket)
  }
  const forget = (socket: Socket): void => {
    const connection = connections.get(socket)
    if (connection === undefined) return
    connections.delete(socket)
    const left = (countOf.get(connection.address) ?? 1) - 1
    if (left > 0) countOf.set(connection.address, left)
    else countOf.delete(connection.address)
  }
  server.maxConnections = maxConnections + SLACK
  server.on('drop', o.onRefused)
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? ''
    const name = connectionName(socket)
    const added = { name, address, socket, bytes: 0, movedAt: clock.now() }
    connections.set(socket, added)
    const count = (countOf.get(address) ?? 0) + 1
    countOf.set(address, count)
    socket.once('close', () => forget(socket))
    const isTooMany = maxConnectionsPerAddress > 0 && count > maxConnectionsPerAddress
    if (isTooMany) endFor(added, (it) => it !== added && it.address === address)
    else if (connections.size > maxConnections) endFor(added, (it) => it !== added)
  })
  let stopTimer: (() => void) | undefined
  const lookAgain = (): void => {
    look()
    stopTimer = clock.setTimer(LOOK_MS, lookAgain)
  }
  server.once('listening', lookAgain)
  server.once('close', () => stopTimer?.())
}

function bytesOf({ bytesRead, bytesWritten }: Socket): number {
  return bytesRead + bytesWritten
}

function hasMoved({ socket, bytes }: Connection): boolean {
  return bytesOf(socket) !== bytes
}
