import { until } from '@tutti/chassis/testing'
import { decodeHeartbeat, type Heartbeat, peerSubjects, type SubjectNames } from '@tutti/protocol'
import { connect } from 'nats'

export type PeerWatch = Awaited<ReturnType<typeof watchPeers>>

/** Sees the heartbeats of a repository from now on, as a router does. It stays connected over restarts of the broker. */
export async function watchPeers(url: string, names: SubjectNames) {
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
  /** Waits for a heartbeat that comes after this call and fits. */
  const next = (
    peer: string,
    what: string,
    fits: (heartbeat: Heartbeat) => boolean,
  ): Promise<Heartbeat> => {
    const before = heard.get(peer)
    const said = (): string => `peer ${peer} ${what}; it says ${JSON.stringify(heard.get(peer))}`
    return until(said, () => {
      const now = heard.get(peer)
      return now !== undefined && now !== before && fits(now) && now
    })
  }
  return {
    latest: (peer: string) => heard.get(peer),
    next,
    /** Waits until the peer says that nothing is queued or in flight. */
    idle: (peer: string) => next(peer, 'is idle', (h) => h.inFlight === 0),
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
