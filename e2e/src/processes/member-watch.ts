import { until } from '@tutti/chassis/testing'
import {
  buildSubjects,
  decodeHeartbeat,
  type Heartbeat,
  type SentHeartbeat,
  type SubjectNames,
} from '@tutti/protocol'
import { connect } from 'nats'

export type MemberWatch = Awaited<ReturnType<typeof watchMembers>>

/** Sees the heartbeats of a repository from now on, as a router does. It stays connected over restarts of the broker. */
export async function watchMembers(url: string, names: SubjectNames) {
  const connection = await connect({
    servers: url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
  })
  const heard = new Map<string, Heartbeat>()
  for (const role of ['router', 'step'] as const) {
    connection.subscribe(buildSubjects(names).heartbeats(role), {
      callback: (error, message) => {
        if (error !== null) return
        const said = readHeartbeat(message.data)
        const revisions = said?.revisions ?? heard.get(said?.member ?? '')?.revisions
        if (said !== undefined && revisions !== undefined) {
          heard.set(said.member, { ...said, revisions })
        }
      },
    })
  }
  await connection.flush()
  /** Waits for a heartbeat that comes after this call and fits. */
  const next = (
    member: string,
    what: string,
    fits: (heartbeat: Heartbeat) => boolean,
  ): Promise<Heartbeat> => {
    const before = heard.get(member)
    const said = (): string =>
      `member ${member} ${what}; it says ${JSON.stringify(heard.get(member))}`
    return until(said, () => {
      const now = heard.get(member)
      return now !== undefined && now !== before && fits(now) && now
    })
  }
  return {
    latest: (member: string) => heard.get(member),
    next,
    /** Waits until the member says that nothing is queued or in flight. */
    idle: (member: string) => next(member, 'is idle', (h) => h.inFlight === 0),
    close: () => connection.close(),
  }
}

function readHeartbeat(bytes: Uint8Array): SentHeartbeat | undefined {
  try {
    return decodeHeartbeat(bytes)
  } catch {
    // A stranger's, as a router would see it.
    return undefined
  }
}
