import { createHash } from 'node:crypto'
import {
  type ChunkHeader,
  decodeChunk,
  decodePeerMessage,
  encodeChunk,
  encodeHeartbeat,
  encodePeerMessage,
  HEARTBEAT_REVISIONS,
  type Heartbeat,
  type PeerMessage,
  type PeerSubjects,
} from '@tutti/protocol'
import { between, oneOf, type Random } from './history-requests.ts'

/** Numbers that code forgets. */
const NUMBERS = [0, 1, 2, 15, 65_537, 2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER] as const
/** What honest peers serve here. */
export const HONEST_MODELS = ['slow', 'add_one_batch', 'big_identity'] as const
/** Of the slow model: many times what is asked of it, and yet soon done. */
const MOST_ROUNDS = 100n
/** Stands in everything that is forged, so that a client can tell it from what the system says. */
export const FORGED = 'forged by a hostile peer'

/** Some bytes of chance. */
export function noise(random: Random, most: number): Uint8Array {
  return Uint8Array.from({ length: between(random, 0, most) }, () => between(random, 0, 255))
}

/** The bytes of a message cut short, with bits turned over, or with something behind them. */
export function damaged(random: Random, bytes: Uint8Array): Uint8Array {
  const fate = random()
  if (fate < 0.3) return bytes.slice(0, between(random, 0, bytes.byteLength))
  if (fate < 0.4) return Buffer.concat([bytes, noise(random, 20)])
  const copy = Uint8Array.from(bytes)
  for (let i = between(random, 1, 8); i > 0 && copy.byteLength > 0; i -= 1) {
    // Most fields are near the start.
    const at = between(random, 0, Math.min(copy.byteLength - 1, random() < 0.7 ? 200 : 1e9))
    copy[at] = (copy[at] ?? 0) ^ (1 << between(random, 0, 7))
  }
  return copy
}

/**
 * What carries tensors, in one's own name: credentials are a repository's, so whoever has them and takes another's name can say
 * wrong bytes. That is not what is tried here.
 */
export function withoutTensorsOfOthers(bytes: Uint8Array, from: string): Uint8Array {
  try {
    const message = decodePeerMessage(bytes)
    const carries = message.type === 'offer' || message.type === 'response'
    return carries ? encodePeerMessage({ ...message, from }) : bytes
  } catch {
    // A chunk, a heartbeat, a question or an answer.
  }
  try {
    const { bytes: piece, ...header } = decodeChunk(bytes)
    return encodeChunk({ ...header, from }, piece)
  } catch {
    return bytes
  }
}

/**
 * Whether somebody asks the slow model for work without end. Who has credentials may: the model's instances are then taken, and
 * nobody else is served by them. That is not what is tried here either.
 */
export function asksForEndlessWork(bytes: Uint8Array): boolean {
  try {
    const message = decodePeerMessage(bytes)
    if (message.type !== 'offer' || message.envelope.model !== 'slow') return false
    const at = message.envelope.inputs.findIndex(({ datatype }) => datatype === 'INT64')
    const part = message.parts[at]
    if (part?.kind !== 'inline' || part.bytes.byteLength < 8) return false
    const { buffer, byteOffset } = part.bytes
    return new DataView(buffer, byteOffset).getBigInt64(0, true) > MOST_ROUNDS
  } catch {
    return false
  }
}

/** A heartbeat that contradicts what the peer says of itself. */
export function forgedHeartbeat(random: Random, known: Heartbeat): Uint8Array {
  const number = (): number => oneOf(random, NUMBERS)
  const fate = random()
  if (fate < 0.15) return encodeHeartbeat(farewell(known))
  return encodeHeartbeat({
    ...known,
    role: random() < 0.8 ? known.role : oneOf(random, ['step', 'router']),
    sequence: random() < 0.5 ? known.sequence + between(random, 1, 40) : number(),
    description: random() < 0.5 ? known.description : `forged ${between(random, 0, 9)}`,
    inFlight: number(),
    queued: number(),
    freeSlots: number(),
    freeBytes: number(),
    draining: random() < 0.3,
    bearers: random() < 0.5 ? ['nats'] : [],
    revisions: random() < 0.5 ? known.revisions : forgedRevisions(random),
    protocol: random() < 0.9 ? known.protocol : number(),
  })
}

/** Its last word, which it never said. */
export function farewell(known: Heartbeat): Heartbeat {
  const nothing = { inFlight: 0, queued: 0, freeSlots: 0, freeBytes: 0 }
  return { ...known, ...nothing, draining: true, bearers: [], revisions: [] }
}

function forgedRevisions(random: Random): Heartbeat['revisions'] {
  return Array.from({ length: between(random, 0, 40) }, () => [
    random() < 0.5 ? oneOf(random, HONEST_MODELS) : `forged ${between(random, 0, 999)}`,
    oneOf(random, [1, 2, 3]),
    `forged ${between(random, 0, 9)}`,
  ])
}

/** What a replica that nobody started says: that it serves what an honest one serves. */
export function inventedHeartbeat(peer: string, sequence: number, honest: Heartbeat): Uint8Array {
  const load = { inFlight: 0, queued: 0, freeSlots: 1e6, freeBytes: 1e12, draining: false }
  return encodeHeartbeat({ ...honest, ...load, peer, sequence, description: `of ${peer}` })
}

/** A step of the largest heartbeat, and its description, near to what one message carries. */
export function largeStep(
  peer: string,
  honest: Heartbeat,
): { readonly heartbeat: Uint8Array; readonly description: Uint8Array } {
  const revisions = Array.from(
    { length: HEARTBEAT_REVISIONS },
    (_, i) => [`${peer} ${i} ${'x'.repeat(60)}`, 1, 'r'] as const,
  )
  const models = revisions.map(([name, version, revision]) => ({
    name,
    labels: [],
    reason: '',
    versions: [{ version, revision, state: 'READY', reason: '' }],
  }))
  const answer = { replica: peer, models }
  const description = createHash('sha256').update(JSON.stringify(answer)).digest('base64url')
  return {
    heartbeat: encodeHeartbeat({ ...honest, peer, sequence: 1, description, revisions }),
    description: Buffer.from(JSON.stringify(answer)),
  }
}

/** The answer to a question, whole, in the name of the peer that was asked. */
export function questionAnswer(from: string, call: number, bytes: Uint8Array): Uint8Array {
  const answer = { name: 'answer', datatype: 'UINT8', shape: [bytes.byteLength] } as const
  return encodePeerMessage({
    from,
    call,
    type: 'response',
    index: 0,
    final: true,
    outputs: [answer],
    parts: [{ kind: 'inline', bytes }],
    parameters: new Map(),
  })
}

type Unsigned<T> = T extends PeerMessage ? Omit<T, 'from'> : never
type Said = Unsigned<PeerMessage>

/** What can be said of a call without its tensors: every type of message but the offer. */
export function forgedControl(random: Random, from: string, call: number): Uint8Array {
  const error = { code: 'UNAVAILABLE', reason: 'STEP_LOST', message: FORGED, details: {} } as const
  const transfer = between(random, 0, 40)
  const credits = [{ transfer, upTo: oneOf(random, NUMBERS) }]
  const said: readonly Said[] = [
    { type: 'accepted', call, credits },
    { type: 'refused', call, error },
    { type: 'credit', call, credits },
    {
      type: 'response-credit',
      call,
      responses: oneOf(random, NUMBERS),
      received: oneOf(random, NUMBERS),
    },
    { type: 'resend', call, transfer, offset: oneOf(random, NUMBERS) },
    { type: 'cancel', call, error },
    { type: 'done', call },
    forgedResponse(random, call),
  ]
  return encodePeerMessage({ ...oneOf(random, said), from })
}

/** One that can only be refused: out of turn, too large, or an error. */
function forgedResponse(random: Random, call: number): Said {
  const base = { type: 'response', call, parameters: new Map() } as const
  const size = oneOf(random, [600, 1200]) * 1024 * 1024
  return oneOf<Said>(random, [
    { ...base, index: 7_000_000, final: false, outputs: [], parts: [] },
    {
      ...base,
      index: 0,
      final: true,
      outputs: [{ name: 'Y', datatype: 'UINT8', shape: [size] }],
      parts: [{ kind: 'transfer', transfer: between(random, 1, 40), size }],
    },
    {
      ...base,
      index: 0,
      final: true,
      outputs: [],
      parts: [],
      error: { code: 'UNAVAILABLE', reason: 'STEP_LOST', message: FORGED, details: {} },
    },
  ])
}

/** An offer to an honest step: small and right, or of bytes that never come. */
export function hostileOffer(
  random: Random,
  o: { readonly from: string; readonly call: number; readonly honest: Heartbeat },
): Uint8Array {
  const [model, version, revision] = oneOf(random, o.honest.revisions)
  const size = between(random, 1, 500) * 1024 * 1024
  const isLarge = random() < 0.5
  const bytes = new Uint8Array(64)
  return encodePeerMessage({
    type: 'offer',
    from: o.from,
    call: o.call,
    responseCredits: oneOf(random, NUMBERS),
    envelope: {
      requestKey: FORGED,
      model,
      version,
      revision: random() < 0.8 ? revision : 'forged',
      step: '',
      attempt: 1,
      context: {
        id: '',
        correlationId: 0n,
        sequenceStart: false,
        sequenceEnd: false,
        priority: 0n,
        timeoutUs: 0n,
        parameters: new Map(),
      },
      requestedOutputs: [],
      inputs: [
        isLarge
          ? { name: 'x', datatype: 'UINT8', shape: [size] }
          : { name: 'X', datatype: 'FP32', shape: [1, 16] },
      ],
    },
    parts: [
      isLarge
        ? { kind: 'transfer', transfer: between(random, 1, 1e6), size }
        : { kind: 'inline', bytes },
    ],
  })
}

/** A piece of a transfer of a peer's own, announced or not. */
export function hostileChunk(random: Random, from: string, most: number): Uint8Array {
  const bytes = new Uint8Array(between(random, 1, most))
  const offset = oneOf(random, [0, 1, 8, 512 * 1024])
  const header: ChunkHeader = {
    from,
    transfer: between(random, 1, 40),
    offset,
    total: offset + bytes.byteLength,
  }
  return encodeChunk(header, bytes)
}

/** Every subject on which a peer listens, and some next to them. */
export function subjectsOf(subjects: PeerSubjects, peer: string, random: Random): string[] {
  const number = between(random, 1, 3000)
  return [
    subjects.heartbeat(peer),
    subjects.control(peer),
    subjects.data(peer),
    subjects.ping(peer),
    `${subjects.inbox(peer)}.ask.${number}`,
    `${subjects.inbox(peer)}.call.${number}`,
    `${subjects.inbox(peer)}.peer.${peer}`,
    `${subjects.inbox(peer)}.x`,
    `${subjects.inbox(peer)}.ask.%zz.y`,
  ]
}
