import {
  type ChunkHeader,
  decodePeerMessage,
  encodeChunk,
  encodeHeartbeat,
  encodePeerMessage,
  type Heartbeat,
  type PeerSubjects,
  peerSubjects,
} from '@tutti/protocol'
import { connect, headers, type NatsConnection } from 'nats'
import type { Test } from 'tap'
import { between, oneOf, type Random } from './history-requests.ts'
import type { PeerWatch } from './peer-watch.ts'

/** Numbers that code forgets. */
const NUMBERS = [0, 1, 2, 15, 65_537, 2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER] as const
/** What honest peers serve here. */
export const HONEST_MODELS = ['slow', 'add_one_batch', 'big_identity'] as const

interface Overheard {
  readonly subject: string
  readonly bytes: Uint8Array
  readonly reply?: string
  /** True for what carries tensors: credentials are a repository's, so bytes in the name of another peer can be wrong. */
  readonly hasTensors: boolean
}

/** What honest peers said lately that is kept to be said again. */
const OVERHEARD = 500
/** Between two looks whether the broker keeps up. */
const AT_ONCE = 200

export interface HostilePeerOptions {
  readonly url: string
  readonly watch: PeerWatch
  /** Ids of the peers to harm. */
  readonly honest: readonly string[]
  readonly random: Random
}

/**
 * Somebody with valid credentials who means harm, all of it of one seed. What single messages may not do is shown in
 * services/transport; this is about processes under thousands of them.
 */
export class HostilePeer {
  readonly subjects: PeerSubjects = peerSubjects({ prefix: 'tutti', repository: 'default' })
  readonly #connection: NatsConnection
  readonly #o: HostilePeerOptions
  readonly #random: Random
  readonly #overheard: Overheard[] = []
  readonly #said: ReadonlyMap<string, Heartbeat | undefined>
  /** The highest number of a call that was heard. */
  #calls = 1
  #sequence = 0

  private constructor(connection: NatsConnection, o: HostilePeerOptions) {
    this.#connection = connection
    this.#o = o
    this.#random = o.random
    this.#said = new Map(o.honest.map((id) => [id, o.watch.latest(id)]))
    // Without echo it does not hear what it says itself.
    connection.subscribe(this.subjects.all, {
      callback: (error, { subject, data, reply }) => {
        if (error === null) this.#overhear(subject, data, reply)
      },
    })
  }

  /** Joins the broker until the test ends. */
  static async join(t: Test, o: HostilePeerOptions): Promise<HostilePeer> {
    const connection = await connect({ servers: o.url, noEcho: true, maxReconnectAttempts: -1 })
    t.teardown(() => connection.close())
    return new HostilePeer(connection, o)
  }

  /** Bytes of chance on every subject, with and without a place to answer to. */
  async sendNoise(count: number): Promise<void> {
    await this.#many(count, () => this.#publish(this.#anySubject(), noise(this.#random, 400)))
  }

  /** What honest peers said, and offers of its own, damaged, where it belongs or where it never was meant to be. */
  async sendDamaged(count: number): Promise<void> {
    const harmless = this.#overheard.filter(({ hasTensors }) => !hasTensors)
    await this.#many(count, () => {
      const { subject, bytes } =
        this.#random() < 0.6 ? oneOf(this.#random, harmless) : this.#offer('hostile')
      const to = this.#random() < 0.7 ? subject : this.#anySubject()
      this.#publish(to, damaged(this.#random, bytes))
    })
  }

  /** What honest peers said, as they said it. */
  async replay(count: number): Promise<void> {
    await this.#many(count, () => {
      const { subject, bytes, reply } = oneOf(this.#random, this.#overheard)
      this.#connection.publish(subject, bytes, reply === undefined ? {} : { reply })
    })
  }

  /** Heartbeats of honest peers that contradict them. */
  async contradict(count: number): Promise<void> {
    await this.#many(count, () => {
      const peer = this.#anyPeer()
      const bytes = forgedHeartbeat(this.#random, this.#known(peer))
      this.#publish(this.subjects.heartbeat(peer), bytes)
    })
  }

  /** Replicas that nobody started, which come, serve what the honest ones serve, swallow what they get, and go. */
  async invent(count: number): Promise<void> {
    const load = { inFlight: 0, queued: 0, freeSlots: 1e6, freeBytes: 1e12, draining: false }
    await this.#many(count, () => {
      const peer = `invented-${between(this.#random, 0, 5000)}`
      this.#sequence += 1
      const sequence = this.#sequence
      const said = { ...this.#honestStep(), ...load, peer, sequence, description: `of ${peer}` }
      this.#publish(this.subjects.heartbeat(peer), encodeHeartbeat(said))
    })
  }

  /** The broker's word that nobody listens for an honest peer. */
  async denyPeers(count: number): Promise<void> {
    await this.#many(count, () => {
      const inbox = this.subjects.inbox(this.#anyPeer())
      const subject = oneOf(this.#random, [
        `${inbox}.peer.${this.#anyPeer()}`,
        `${inbox}.call.${this.#calls}`,
        `${inbox}.ask.${between(this.#random, 1, 50)}`,
      ])
      this.#connection.publish(subject, new Uint8Array(), { headers: headers(503, 'nobody') })
    })
  }

  /** Offers of its own, of invented callers too, and pieces of what it never announced, as fast as it goes. */
  async flood(count: number): Promise<void> {
    await this.#many(count, () => {
      const random = this.#random
      const from = `caller-${between(random, 0, 3000)}`
      const { subject, bytes } = this.#offer(from)
      this.#publish(subject, bytes)
      this.#publish(this.subjects.ping(this.#anyPeer()), new Uint8Array(), this.#anySubject())
      if (random() > 0.02) return
      this.#publish(this.subjects.data(this.#anyPeer()), hostileChunk(random, from))
    })
  }

  #offer(from: string): Pick<Overheard, 'subject' | 'bytes'> {
    const honest = this.#honestStep()
    this.#sequence += 1
    const bytes = hostileOffer(this.#random, { from, call: this.#sequence, honest })
    return { subject: this.subjects.control(honest.peer), bytes }
  }

  #overhear(subject: string, bytes: Uint8Array, reply?: string): void {
    let hasTensors = subject.endsWith('.data')
    try {
      if (subject.endsWith('.ctl')) {
        const { call, type } = decodePeerMessage(bytes)
        this.#calls = Math.max(this.#calls, call)
        hasTensors = type === 'offer' || type === 'response'
      }
    } catch {
      // Damaged by somebody, us perhaps.
    }
    if (this.#overheard.length >= OVERHEARD) this.#overheard.shift()
    this.#overheard.push({ subject, bytes, hasTensors, ...(reply && { reply }) })
  }

  #anyPeer(): string {
    return oneOf(this.#random, this.#o.honest)
  }

  #anySubject(): string {
    return oneOf(this.#random, subjectsOf(this.subjects, this.#anyPeer(), this.#random))
  }

  #honestStep(): Heartbeat {
    const steps = this.#o.honest.filter((id) => this.#known(id).role === 'step')
    return this.#known(oneOf(this.#random, steps))
  }

  /** What an honest peer said of itself before, as of now. */
  #known(peer: string): Heartbeat {
    const said = this.#said.get(peer)
    if (said === undefined) throw new Error(`${peer} was not heard`)
    return { ...said, sequence: this.#o.watch.latest(peer)?.sequence ?? said.sequence }
  }

  #publish(subject: string, bytes: Uint8Array, reply?: string): void {
    const isAsking = reply !== undefined || this.#random() < 0.3
    const to = reply ?? this.#anySubject()
    this.#connection.publish(subject, bytes, isAsking ? { reply: to } : {})
  }

  async #many(count: number, act: () => void): Promise<void> {
    for (let sent = 1; sent <= count; sent += 1) {
      act()
      if (sent % AT_ONCE === 0) await this.#connection.flush()
    }
    await this.#connection.flush()
  }
}

/** Some bytes of chance. */
function noise(random: Random, most: number): Uint8Array {
  return Uint8Array.from({ length: between(random, 0, most) }, () => between(random, 0, 255))
}

/** The bytes of a message cut short, with bits turned over, or with something behind them. */
function damaged(random: Random, bytes: Uint8Array): Uint8Array {
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

const GONE = {
  inFlight: 0,
  queued: 0,
  freeSlots: 0,
  freeBytes: 0,
  draining: true,
  bearers: [],
  revisions: [],
} as const

/** A heartbeat that contradicts what the peer says of itself. */
function forgedHeartbeat(random: Random, known: Heartbeat): Uint8Array {
  const number = (): number => oneOf(random, NUMBERS)
  // Its last word, which it never said.
  if (random() < 0.15) return encodeHeartbeat({ ...known, ...GONE })
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

function forgedRevisions(random: Random): Heartbeat['revisions'] {
  return Array.from({ length: between(random, 0, 40) }, () => [
    random() < 0.5 ? oneOf(random, HONEST_MODELS) : `forged ${between(random, 0, 999)}`,
    oneOf(random, [1, 2, 3]),
    `forged ${between(random, 0, 9)}`,
  ])
}

/** An offer to an honest step: small and right, or of bytes that never come. */
function hostileOffer(
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
      requestKey: 'forged',
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
function hostileChunk(random: Random, from: string): Uint8Array {
  const bytes = new Uint8Array(between(random, 1, 900_000))
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
function subjectsOf(subjects: PeerSubjects, peer: string, random: Random): string[] {
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
