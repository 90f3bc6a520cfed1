import {
  decodePeerMessage,
  encodeChunk,
  encodeHeartbeat,
  encodePeerMessage,
  type Heartbeat,
  type PeerMessage,
  peerSubjects,
  type SubjectNames,
} from '@tutti/protocol'
import { connect } from 'nats'

/** Somebody with the credentials of a peer who speaks the subjects and belongs to nothing. */
export interface Stranger {
  /** Messages that it has overheard, all of calls that have ended by now if it was deafened then. */
  readonly overheard: number
  /** Overhears no more. */
  deafen(): Promise<void>
  /**
   * Says something on every subject of every peer: what it has overheard, whole and cut off, what is no message at all, and
   * messages of its own of every type, about calls that exist and that do not.
   */
  speak(): Promise<void>
  close(): Promise<void>
}

const NAME = 'stranger'
const HUGE = Number.MAX_SAFE_INTEGER
/** Some of what is overheard, so that a round takes no longer than a request. */
const KEPT = 200

/** @param o.peers - ids of those to whom it speaks. */
export async function startStranger(o: {
  readonly url: string
  readonly names: SubjectNames
  readonly peers: readonly string[]
}): Promise<Stranger> {
  const connection = await connect({ servers: o.url })
  const subjects = peerSubjects(o.names)
  const overheard: { readonly subject: string; readonly data: Uint8Array }[] = []
  let lastCall = 0
  const ears = connection.subscribe(subjects.all, {
    callback: (error, { subject, data }) => {
      if (error !== null) return
      if (subject.endsWith('.ctl')) lastCall = Math.max(lastCall, decodePeerMessage(data).call)
      if (overheard.length < KEPT) overheard.push({ subject, data })
    },
  })
  await connection.flush()
  return {
    get overheard() {
      return overheard.length
    },
    deafen: async () => {
      ears.unsubscribe()
      await connection.flush()
    },
    speak: async () => {
      for (const { subject, data } of overheard) {
        connection.publish(subject, data)
        connection.publish(subject, data.subarray(0, Math.floor(data.byteLength / 2)))
      }
      for (const peer of o.peers) {
        for (const subject of subjectsOf(o.names, peer)) {
          for (const data of [...NONSENSE, ...ownMessages(lastCall)]) {
            connection.publish(subject, data)
            connection.publish(subject, data, { reply: subjects.control(peer) })
          }
        }
      }
      // The next round is about calls that were made meanwhile.
      lastCall += 2
      await connection.flush()
    },
    close: () => connection.close(),
  }
}

/** A step that says that it serves what another one does, and is not there. */
export function ghostOf(heartbeat: Heartbeat, sequence: number): Uint8Array {
  return encodeHeartbeat({ ...heartbeat, peer: 'ghost', sequence, inFlight: 0 })
}

const NONSENSE: readonly Uint8Array[] = [
  new Uint8Array(),
  new Uint8Array(100).fill(0xff),
  Uint8Array.from({ length: 300 }, (_, i) => (i * 7919) % 251),
  Buffer.from('{"peer":"stranger"}'),
  Buffer.from('null'),
]

function subjectsOf(names: SubjectNames, peer: string): readonly string[] {
  const subjects = peerSubjects(names)
  return [
    subjects.heartbeat(peer),
    subjects.control(peer),
    subjects.data(peer),
    subjects.ping(peer),
    ...['ask.1', 'call.1', 'peer.nobody', 'nonsense'].map(
      (rest) => `${subjects.inbox(peer)}.${rest}`,
    ),
  ]
}

/** Every type of message but an offer, which anybody may make, about the calls around this one. */
function ownMessages(lastCall: number): readonly Uint8Array[] {
  const error = { code: 'INTERNAL', reason: 'INTERNAL', message: 'foreign', details: {} } as const
  return [lastCall, lastCall + 1, lastCall + 2].flatMap((call) => {
    const credits = [{ transfer: call, upTo: HUGE }]
    const response = { index: 0, final: true, outputs: [], parts: [], parameters: new Map() }
    const messages: readonly PeerMessage[] = [
      { from: NAME, call, type: 'accepted', credits },
      { from: NAME, call, type: 'refused', error },
      { from: NAME, call, type: 'response', ...response },
      { from: NAME, call, type: 'response', ...response, error },
      { from: NAME, call, type: 'credit', credits },
      { from: NAME, call, type: 'response-credit', responses: HUGE, received: HUGE },
      { from: NAME, call, type: 'resend', transfer: call, offset: 0 },
      { from: NAME, call, type: 'cancel', error },
      { from: NAME, call, type: 'done' },
    ]
    const chunk = { from: NAME, transfer: call, offset: 0, total: 100 }
    return [...messages.map(encodePeerMessage), encodeChunk(chunk, new Uint8Array(100))]
  })
}
