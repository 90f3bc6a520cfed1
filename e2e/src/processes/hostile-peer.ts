import {
  decodePeerMessage,
  encodeHeartbeat,
  type Heartbeat,
  type PeerMessage,
  type PeerSubjects,
  peerSubjects,
} from '@tutti/protocol'
import { connect, headers, type NatsConnection } from 'nats'
import type { Test } from 'tap'
import { between, oneOf, type Random } from './history-requests.ts'
import {
  asksForEndlessWork,
  damaged,
  farewell,
  forgedControl,
  forgedHeartbeat,
  hostileChunk,
  hostileOffer,
  inventedHeartbeat,
  largeStep,
  noise,
  questionAnswer,
  subjectsOf,
  withoutTensorsOfOthers,
} from './hostile-material.ts'
import type { PeerWatch } from './peer-watch.ts'

interface Overheard {
  readonly subject: string
  readonly bytes: Uint8Array
  readonly reply?: string
}

/** What honest peers said lately that is kept to be said again. */
const OVERHEARD = 500
/** A router that asks nothing is not waited for for ever. */
const MOST_WAITS = 3000
/** Between two looks whether the broker keeps up. */
const AT_ONCE = 200

/** Somebody with valid credentials who means harm, all of it of one seed. */
export class HostilePeer {
  readonly subjects: PeerSubjects
  readonly #connection: NatsConnection
  readonly #watch: PeerWatch
  readonly #honest: readonly string[]
  readonly #random: Random
  readonly #overheard: Overheard[] = []
  readonly #said: ReadonlyMap<string, Heartbeat>
  /** The highest number of a call that was heard. */
  #calls = 1
  /** What it answers to questions about a peer, in that peer's name. */
  readonly #lies = new Map<string, Uint8Array>()
  #lied = 0
  #sequence = 0

  private constructor(
    connection: NatsConnection,
    o: {
      readonly watch: PeerWatch
      readonly honest: readonly string[]
      readonly random: Random
    },
  ) {
    this.#connection = connection
    this.#watch = o.watch
    this.#honest = o.honest
    this.#random = o.random
    this.#said = new Map(
      o.honest.flatMap((id) => {
        const heard = o.watch.latest(id)
        return heard === undefined ? [] : [[id, heard] as const]
      }),
    )
    this.subjects = peerSubjects({ prefix: 'tutti', repository: 'default' })
    // Without echo it does not hear what it says itself.
    connection.subscribe(this.subjects.all, {
      callback: (error, { subject, data, reply }) => {
        if (error === null) this.#overhear({ subject, bytes: data, ...(reply && { reply }) })
      },
    })
  }

  /** Joins the broker. @param o.honest - ids of the peers to harm. */
  static async join(
    t: Test,
    o: {
      readonly url: string
      readonly watch: PeerWatch
      readonly honest: readonly string[]
      readonly random: Random
    },
  ): Promise<HostilePeer> {
    const connection = await connect({ servers: o.url, noEcho: true, maxReconnectAttempts: -1 })
    t.teardown(() => connection.close())
    return new HostilePeer(connection, o)
  }

  /** Bytes of chance on every subject, with and without a place to answer to. */
  async sendNoise(count: number): Promise<void> {
    await this.#many(count, () => this.#publish(this.#anySubject(), noise(this.#random, 400)))
  }

  /** What honest peers said, damaged, where they said it or where it never was meant to be. */
  async sendDamaged(count: number): Promise<void> {
    await this.#many(count, () => {
      const { subject, bytes } = oneOf(this.#random, this.#overheard)
      const to = this.#random() < 0.7 ? subject : this.#anySubject()
      const said = damaged(this.#random, withoutTensorsOfOthers(bytes, 'hostile'))
      if (!asksForEndlessWork(said)) this.#publish(to, said)
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
    await this.#many(count, () => {
      const peer = `invented-${between(this.#random, 0, 5000)}`
      this.#sequence += 1
      this.#publish(
        this.subjects.heartbeat(peer),
        inventedHeartbeat(peer, this.#sequence, this.#honestStep()),
      )
    })
  }

  /** What is said of calls and transfers, for calls of others: in its own name, or in theirs. */
  async interfere(count: number, from: 'itself' | 'others'): Promise<void> {
    await this.#many(count, () => {
      const random = this.#random
      const name = from === 'itself' ? 'hostile' : this.#anyPeer()
      const call = Math.max(1, this.#calls - between(random, -3, 40))
      this.#publish(this.subjects.control(this.#anyPeer()), forgedControl(random, name, call))
      this.#publish(this.subjects.data(this.#anyPeer()), hostileChunk(random, 'hostile', 2000))
    })
  }

  /** Replicas that nobody started, each with as many revisions and as long a description as there can be. */
  async overfill(count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) {
      const peer = `large-${i}`
      const large = largeStep(peer, this.#honestStep())
      this.#lies.set(peer, large.description)
      this.#connection.publish(this.subjects.heartbeat(peer), large.heartbeat)
      await this.#connection.flush()
    }
    this.#lies.clear()
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
    let call = 0
    await this.#many(count, () => {
      const random = this.#random
      const honest = this.#honestStep()
      const from = `caller-${between(random, 0, 3000)}`
      call += 1
      this.#publish(
        this.subjects.control(honest.peer),
        hostileOffer(random, { from, call, honest }),
      )
      this.#publish(this.subjects.ping(this.#anyPeer()), new Uint8Array(), this.#anySubject())
      if (call % 50 !== 0) return
      this.#publish(this.subjects.data(this.#anyPeer()), hostileChunk(random, from, 900_000))
    })
  }

  /**
   * Answers the questions about all steps in their names, with lies: a farewell and a new beginning that they never said make
   * the routers ask.
   *
   * @param o.hold - keeps the steps from answering first, until `release`.
   */
  async usurp(o: { readonly hold: () => void; readonly release: () => void }): Promise<void> {
    const steps = this.#named('step')
    const first = this.#lied
    for (const id of steps) this.#lies.set(id, emptyDescription(id))
    o.hold()
    for (const id of steps) {
      const known = this.#known(id)
      const subject = this.subjects.heartbeat(id)
      this.#connection.publish(subject, encodeHeartbeat(farewell(known)))
      const again = { ...known, sequence: known.sequence + 1 }
      this.#connection.publish(subject, encodeHeartbeat(again))
    }
    for (let i = 0; i < MOST_WAITS && this.#lied < first + steps.length; i += 1) {
      await this.#connection.flush()
    }
    this.#lies.clear()
    o.release()
  }

  /** Answers to calls of the routers in the name of those who were called, and to calls that never were. */
  async answerForOthers(count: number): Promise<void> {
    await this.#many(count, () => {
      const replica = oneOf(this.#random, this.#named('step'))
      // A changed heartbeat makes the router ask.
      this.#publish(
        this.subjects.heartbeat(replica),
        forgedHeartbeat(this.#random, this.#known(replica)),
      )
      const router = oneOf(this.#random, this.#named('router'))
      for (let i = 0; i < 20; i += 1) {
        const call = Math.max(1, this.#calls + between(this.#random, -20, 20))
        this.#publish(
          this.subjects.control(router),
          questionAnswer(replica, call, emptyDescription(replica)),
        )
      }
    })
  }

  #overhear(said: Overheard): void {
    // Its own inventions are answered too; what matters is what the honest ones do.
    if (this.#overheard.length >= OVERHEARD) this.#overheard.shift()
    this.#overheard.push(said)
    if (!said.subject.endsWith('.ctl')) return
    try {
      const message = decodePeerMessage(said.bytes)
      this.#calls = Math.max(this.#calls, message.call)
      this.#lie(said.subject, message)
    } catch {
      // Damaged by somebody, us perhaps.
    }
  }

  /** Answers a question to somebody in whose name there is a lie. */
  #lie(subject: string, message: PeerMessage): void {
    if (message.type !== 'offer' || message.envelope.step !== 'describe') return
    for (const [peer, answer] of this.#lies) {
      if (this.subjects.control(peer) !== subject) continue
      this.#lied += 1
      this.#connection.publish(
        this.subjects.control(message.from),
        questionAnswer(peer, message.call, answer),
      )
    }
  }

  #named(role: Heartbeat['role']): readonly string[] {
    return this.#honest.filter((id) => this.#known(id).role === role)
  }

  #anyPeer(): string {
    return oneOf(this.#random, this.#honest)
  }

  #anySubject(): string {
    return oneOf(this.#random, subjectsOf(this.subjects, this.#anyPeer(), this.#random))
  }

  #honestStep(): Heartbeat {
    return this.#known(oneOf(this.#random, this.#named('step')))
  }

  /** What an honest peer said of itself before, as of now. */
  #known(peer: string): Heartbeat {
    const said = this.#said.get(peer)
    if (said === undefined) throw new Error(`${peer} was not heard`)
    return { ...said, sequence: this.#watch.latest(peer)?.sequence ?? said.sequence }
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

function emptyDescription(replica: string): Uint8Array {
  return Buffer.from(JSON.stringify({ replica, models: [] }))
}
