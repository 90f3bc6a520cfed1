import {
  buildSubjects,
  type ChunkHeader,
  decodeMessage,
  encodeChunk,
  encodeHeartbeat,
  encodeMessage,
  type Heartbeat,
  type Subjects,
} from '@tutti/protocol'
import { connect, headers, type NatsConnection } from 'nats'
import type { Test } from 'tap'
import { between, oneOf, type Random } from './history-requests.ts'
import type { MemberWatch } from './member-watch.ts'

/** Numbers that code forgets. */
const NUMBERS = [0, 1, 2, 15, 65_537, 2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER] as const
/** Models that honest members serve here. */
export const HONEST_MODELS = ['slow', 'add_one_batch', 'big_identity'] as const

interface Overheard {
  readonly subject: string
  readonly bytes: Uint8Array
  readonly reply?: string
  /** True for what carries tensors: credentials are a repository's, so bytes in the name of another member can be wrong. */
  readonly hasTensors: boolean
}

/** Recent messages of honest members that are kept to be sent again. */
const OVERHEARD = 500
/** Between two looks whether the broker keeps up. */
const AT_ONCE = 200

export interface HostileMemberOptions {
  readonly url: string
  readonly watch: MemberWatch
  /** Ids of the members to harm. */
  readonly honest: readonly string[]
  readonly random: Random
}

/**
 * Somebody with valid credentials who means harm, all of it of one seed. What single messages may not do is shown in
 * services/transport; this is about processes under thousands of them.
 */
export class HostileMember {
  readonly subjects: Subjects = buildSubjects({ prefix: 'tutti', repository: 'default' })
  readonly #connection: NatsConnection
  readonly #options: HostileMemberOptions
  readonly #random: Random
  readonly #overheard: Overheard[] = []
  readonly #said: ReadonlyMap<string, Heartbeat | undefined>
  /** The highest number of a call that was heard. */
  #calls = 1
  #sequence = 0

  private constructor(connection: NatsConnection, o: HostileMemberOptions) {
    this.#connection = connection
    this.#options = o
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
  static async join(t: Test, o: HostileMemberOptions): Promise<HostileMember> {
    const connection = await connect({ servers: o.url, noEcho: true, maxReconnectAttempts: -1 })
    t.teardown(() => connection.close())
    return new HostileMember(connection, o)
  }

  /** Bytes of chance on every subject, with and without a place to answer to. */
  async sendNoise(count: number): Promise<void> {
    await this.#many(count, () => this.#publish(this.#anySubject(), noise(this.#random, 400)))
  }

  /** Sends what honest members said, and offers of its own, damaged, where it belongs or where it never was meant to be. */
  async sendDamaged(count: number): Promise<void> {
    const harmless = this.#overheard.filter(({ hasTensors }) => !hasTensors)
    await this.#many(count, () => {
      const { subject, bytes } =
        this.#random() < 0.6 ? oneOf(this.#random, harmless) : this.#offer('hostile')
      const to = this.#random() < 0.7 ? subject : this.#anySubject()
      this.#publish(to, damaged(this.#random, bytes))
    })
  }

  /** Repeats what honest members said, as they said it. */
  async replay(count: number): Promise<void> {
    await this.#many(count, () => {
      const { subject, bytes, reply } = oneOf(this.#random, this.#overheard)
      this.#connection.publish(subject, bytes, reply === undefined ? {} : { reply })
    })
  }

  /** Heartbeats of honest members that contradict them. */
  async contradict(count: number): Promise<void> {
    await this.#many(count, () => {
      const member = this.#anyMember()
      const known = this.#known(member)
      const subject = this.subjects.heartbeat(member, known.role)
      this.#publish(subject, forgedHeartbeat(this.#random, known))
    })
  }

  /** Invented replicas: they come, announce the revisions of the honest ones, answer nothing, and go. */
  async invent(count: number): Promise<void> {
    const load = { inFlight: 0, queued: 0, freeSlots: 1e6, freeBytes: 1e12, draining: false }
    await this.#many(count, () => {
      const member = `invented-${between(this.#random, 0, 5000)}`
      this.#sequence += 1
      const sequence = this.#sequence
      const said = { ...this.#honestStep(), ...load, member, sequence, description: `of ${member}` }
      this.#publish(this.subjects.heartbeat(member, 'step'), encodeHeartbeat(said))
    })
  }

  /** The broker's message that an honest member has no responder. */
  async denyMembers(count: number): Promise<void> {
    await this.#many(count, () => {
      const inbox = this.subjects.inbox(this.#anyMember())
      const subject = oneOf(this.#random, [
        `${inbox}.peer.${this.#anyMember()}`,
        `${inbox}.call.${this.#calls}`,
      ])
      this.#connection.publish(subject, new Uint8Array(), { headers: headers(503, 'missing') })
    })
  }

  /** Offers of its own and of invented callers, and chunks of transfers that it never announced, as fast as it can. */
  async flood(count: number): Promise<void> {
    await this.#many(count, () => {
      const random = this.#random
      const from = `caller-${between(random, 0, 3000)}`
      const { subject, bytes } = this.#offer(from)
      this.#publish(subject, bytes)
      this.#publish(this.subjects.ping(this.#anyMember()), new Uint8Array(), this.#anySubject())
      if (random() > 0.02) return
      this.#publish(this.subjects.data(this.#anyMember()), hostileChunk(random, from))
    })
  }

  #offer(from: string): Pick<Overheard, 'subject' | 'bytes'> {
    const honest = this.#honestStep()
    this.#sequence += 1
    const bytes = hostileOffer(this.#random, { from, call: this.#sequence, honest })
    return { subject: this.subjects.control(honest.member), bytes }
  }

  #overhear(subject: string, bytes: Uint8Array, reply?: string): void {
    let hasTensors = subject.endsWith('.data')
    try {
      if (subject.endsWith('.ctl')) {
        const { call, type } = decodeMessage(bytes)
        this.#calls = Math.max(this.#calls, call)
        hasTensors = type === 'offer' || type === 'response'
      }
    } catch {
      // Damaged by somebody, us perhaps.
    }
    if (this.#overheard.length >= OVERHEARD) this.#overheard.shift()
    this.#overheard.push({ subject, bytes, hasTensors, ...(reply && { reply }) })
  }

  #anyMember(): string {
    return oneOf(this.#random, this.#options.honest)
  }

  #anySubject(): string {
    return oneOf(this.#random, subjectsOf(this.subjects, this.#anyMember(), this.#random))
  }

  #honestStep(): Heartbeat {
    const steps = this.#options.honest.filter((id) => this.#known(id).role === 'step')
    return this.#known(oneOf(this.#random, steps))
  }

  /** Returns what an honest member said of itself before, as of now. */
  #known(member: string): Heartbeat {
    const said = this.#said.get(member)
    if (said === undefined) throw new Error(`${member} was not heard`)
    return { ...said, sequence: this.#options.watch.latest(member)?.sequence ?? said.sequence }
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
  transports: [],
  revisions: [],
} as const

/** A heartbeat that contradicts what the member says of itself. */
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
    transports: random() < 0.5 ? ['nats'] : [],
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
  return encodeMessage({
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

/** A piece of a transfer of a member's own, announced or not. */
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

/** Every subject on which a member listens, and some next to them. */
function subjectsOf(subjects: Subjects, member: string, random: Random): string[] {
  const number = between(random, 1, 3000)
  return [
    subjects.heartbeat(member, 'router'),
    subjects.heartbeat(member, 'step'),
    subjects.control(member),
    subjects.data(member),
    subjects.ping(member),
    `${subjects.inbox(member)}.call.${number}`,
    `${subjects.inbox(member)}.peer.${member}`,
    `${subjects.inbox(member)}.x`,
    `${subjects.inbox(member)}.peer.%zz.y`,
  ]
}
