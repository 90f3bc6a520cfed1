import { setTimeout as delay } from 'node:timers/promises'
import {
  type Chunk,
  decodeChunk,
  decodePeerMessage,
  decodeToken,
  type PeerMessage,
} from '@tutti/protocol'
import { connect, type Msg, type NatsConnection } from 'nats'

/** What becomes of a message: it passes, is lost, comes twice, or comes after the one behind it. */
export type Fate = 'pass' | 'lose' | 'twice' | 'late'

/** A message on its way between two peers. */
export type Relayed =
  | { readonly channel: 'ctl'; readonly to: string; readonly message: PeerMessage }
  | { readonly channel: 'data'; readonly to: string; readonly chunk: Chunk }
  | { readonly channel: 'hb' | 'inbox' | 'ping'; readonly to: string }

/** Carries messages between two prefixes, each as its fate wants it. */
export interface Relay {
  close(): Promise<void>
}

const CONTROL_SUBJECTS = ['hb.*', 'peer.*.ctl', 'peer.*.ping', 'inbox.>']
const DATA_SUBJECTS = ['peer.*.data']

/** What comes late waits for the next message of its subject, or so long if none comes. */
const LATE_MS = 300

/**
 * Starts a man in the middle: a peer of one prefix sees those of the other as if they were on its own. The order of messages
 * on a subject is kept, but for what comes late.
 */
export async function startRelay(o: {
  readonly url: string
  readonly prefixes: readonly [string, string]
  readonly repository: string
  readonly fate: (relayed: Relayed) => Fate
}): Promise<Relay> {
  const [one, other] = o.prefixes
  // Without echo it does not hear what it says itself.
  const open = () => connect({ servers: o.url, noEcho: true, maxReconnectAttempts: -1 })
  // Two, as every peer has: heartbeats behind chunks would come too late.
  const [control, data] = [await open(), await open()]
  const held = new Map<string, (() => void)[]>()
  const pass = (from: string, to: string): void => {
    const root = `${from}.${o.repository}.`
    const translate = (subject: string) => `${to}.${o.repository}.${subject.slice(root.length)}`
    for (const [connection, subjects] of [
      [control, CONTROL_SUBJECTS],
      [data, DATA_SUBJECTS],
    ] as const) {
      const callback = (error: Error | null, message: Msg): void => {
        if (error !== null) return
        const relayed = parseSubject(message, root)
        const subject = translate(message.subject)
        const reply = message.reply === undefined ? undefined : translate(message.reply)
        const send = () => publish(connection, subject, message, reply)
        deliver(o.fate(relayed), subject, send, held)
      }
      for (const subject of subjects) connection.subscribe(`${root}${subject}`, { callback })
    }
  }
  pass(one, other)
  pass(other, one)
  await control.flush()
  await data.flush()
  return {
    close: async () => {
      await control.close()
      await data.close()
    },
  }
}

function publish(
  connection: NatsConnection,
  subject: string,
  message: Msg,
  reply: string | undefined,
): void {
  if (connection.isClosed()) return
  connection.publish(subject, message.data, reply === undefined ? {} : { reply })
}

function deliver(
  fate: Fate,
  subject: string,
  send: () => void,
  held: Map<string, (() => void)[]>,
): void {
  if (fate === 'late') {
    held.set(subject, [...(held.get(subject) ?? []), send])
    void delay(LATE_MS).then(() => release(subject, held))
    return
  }
  if (fate !== 'lose') send()
  if (fate === 'twice') send()
  release(subject, held)
}

function release(subject: string, held: Map<string, (() => void)[]>): void {
  const late = held.get(subject) ?? []
  held.delete(subject)
  for (const send of late) send()
}

function parseSubject({ subject, data }: Msg, root: string): Relayed {
  const [kind = '', token = '', channel = ''] = subject.slice(root.length).split('.')
  const to = decodeToken(token) ?? ''
  if (kind === 'hb' || kind === 'inbox') return { channel: kind, to }
  if (channel === 'ctl') return { channel, to, message: decodePeerMessage(data) }
  if (channel === 'data') return { channel, to, chunk: decodeChunk(data) }
  return { channel: 'ping', to }
}
