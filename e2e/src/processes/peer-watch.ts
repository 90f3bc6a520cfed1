import { until } from '@tutti/chassis/testing'
import { decodeHeartbeat, type Heartbeat, peerSubjects, type SubjectNames } from '@tutti/protocol'
import { connect } from 'nats'

/** Sees the heartbeats of a repository, as a router does. */
export interface PeerWatch {
  /** Ids of all that were ever heard, in the order of their first heartbeat. */
  peers(role: Heartbeat['role']): readonly string[]
  latest(peer: string): Heartbeat | undefined
  /** Waits for a heartbeat that comes after this call and fits. */
  next(peer: string, what: string, fits: (heartbeat: Heartbeat) => boolean): Promise<Heartbeat>
  /** Waits until the peer says that nothing is queued or in flight. */
  idle(peer: string): Promise<Heartbeat>
  close(): Promise<void>
}

/** Listens from now on. It stays connected over restarts of the broker. */
export async function watchPeers(url: string, names: SubjectNames): Promise<PeerWatch> {
  const connection = await connect({
    servers: url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
  })
  const heard = new Map<string, Heartbeat>()
  connection.subscribe(peerSubjects(names).heartbeats, {
    callback: (error, message) => {
      if (error !== null) return
      const heartbeat = readHeartbeat(message.data)
      if (heartbeat !== undefined) heard.set(heartbeat.peer, heartbeat)
    },
  })
  await connection.flush()
  const next: PeerWatch['next'] = (peer, what, fits) => {
    const before = heard.get(peer)
    const said = (): string => `peer ${peer} ${what}; it says ${JSON.stringify(heard.get(peer))}`
    return until(said, () => {
      const now = heard.get(peer)
      return now !== undefined && now !== before && fits(now) && now
    })
  }
  return {
    peers: (role) => [...heard.values()].filter((h) => h.role === role).map((h) => h.peer),
    latest: (peer) => heard.get(peer),
    next,
    idle: (peer) => next(peer, 'is idle', (h) => h.inFlight === 0),
    close: () => connection.close(),
  }
}

function readHeartbeat(bytes: Uint8Array): Heartbeat | undefined {
  try {
    return decodeHeartbeat(bytes)
  } catch {
    // A stranger's, as a router would see it.
    return undefined
  }
}
