import { createHash } from 'node:crypto'
import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import { Callee } from '../calls/callee.ts'
import type { CallJob } from '../calls/taken-call.ts'
import type { BrokerMessage } from '../nats/nats-connection.ts'
import { completeSettings, type PeerSettings } from '../peer-settings.ts'
import type { StepPeer, StepPeerOptions } from '../peers.ts'
import { messageTooLarge } from './message-too-large.ts'
import { PeerEndpoint, type PeerState } from './peer-endpoint.ts'
import {
  decodeArgument,
  encodeAnswer,
  encodeAnswerError,
  isQuestion,
  QUESTIONS,
  type Question,
} from './questions.ts'
import { untilIdle } from './until-idle.ts'

/** What a step's peer is opened with. */
export interface OpenStepPeerOptions extends StepPeerOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly settings?: Partial<PeerSettings>
}

/**
 * Brings a step on the broker: it announces itself, takes calls and answers questions until it is closed.
 *
 * @returns when the broker is there, or after `firstConnectMs` without it; then it goes on trying.
 * @throws ServeError SETTING_INVALID, INVALID_PARAMETER if an option cannot be right.
 */
export async function openStepPeer(o: OpenStepPeerOptions): Promise<StepPeer> {
  const settings = completeSettings(o.settings)
  const peer = new ServingPeer(o, settings)
  await peer.endpoint.untilUp(settings.firstConnectMs)
  return peer
}

class ServingPeer implements StepPeer {
  readonly endpoint: PeerEndpoint
  readonly #o: OpenStepPeerOptions
  readonly #settings: PeerSettings
  readonly #callee: Callee
  readonly #stopListening: () => void
  #isDraining = false
  #asks = 0
  #tensors = 0

  constructor(o: OpenStepPeerOptions, settings: PeerSettings) {
    this.#o = o
    this.#settings = settings
    this.endpoint = new PeerEndpoint(
      { broker: o.broker, peer: o.peer, clock: o.clock, log: o.log, settings },
      {
        role: 'step',
        state: () => this.#state(),
        message: (now, message) => {
          if (message.type === 'offer') this.endpoint.membership.expect(now, message.from)
          this.#callee.on(now, message)
        },
        // A step offers nothing.
        noResponder: () => undefined,
        heard: () => {},
        suspected: () => {},
        gone: (now, peer, error) => this.#callee.callerGone(now, peer, error.message),
        up: () => this.#callee.reconnected(),
        down: (now) => this.#callee.disconnected(now),
        tick: (now) => this.#callee.tick(now),
      },
    )
    const { endpoint } = this
    this.#callee = new Callee({
      self: o.peer,
      settings,
      send: (to, message) => endpoint.send(to, message),
      incoming: endpoint.incoming,
      outgoing: endpoint.outgoing,
      inlineLimits: () => endpoint.inlineLimits,
      execute: (job) => this.#execute(job),
    })
    endpoint.link.control.subscribe(endpoint.subjects.asks(o.peer), (message) => {
      void this.#answer(message)
    })
    this.#stopListening = o.onChange(() => endpoint.announceSoon())
  }

  get isConnected(): boolean {
    return this.endpoint.link.isUp
  }

  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    this.#isDraining = true
    this.#callee.drain()
    this.endpoint.events.draining(this.#callee.size)
    this.endpoint.announce()
    const wait = { clock: this.#o.clock, everyMs: IDLE_CHECK_MS, signal: o.signal }
    await untilIdle(() => this.#callee.size, wait)
    this.endpoint.events.drained()
  }

  async close(): Promise<void> {
    this.#stopListening()
    this.#callee.drain()
    await this.endpoint.close()
    // What is still running has nobody to answer to.
    this.#callee.disconnected(this.#o.clock.now())
  }

  #state(): PeerState {
    const { inFlight, queued, freeSlots } = this.#o.load()
    const revisions = this.#o.revisions()
    return {
      description: createHash('sha256').update(JSON.stringify(revisions)).digest('base64url'),
      inFlight,
      queued,
      freeSlots: Math.min(freeSlots, this.#callee.freeSlots),
      freeBytes: this.#callee.freeBytes,
      draining: this.#isDraining,
      revisions,
    }
  }

  #execute(job: CallJob): void {
    const { clock, handle, peer } = this.#o
    const tensors = job.inputs.map((bytes) => ({ owner: peer, id: ++this.#tensors, bytes }))
    const sink = {
      send: (response: Parameters<Callee['respond']>[2]) =>
        this.#callee.respond(clock.now(), job.key, response),
    }
    const run = async (): Promise<void> => handle(job.envelope, tensors, sink, job)
    run().then(
      () => this.#callee.ended(clock.now(), job.key),
      (error: unknown) => this.#callee.ended(clock.now(), job.key, error),
    )
  }

  async #answer({ subject, bytes, reply }: BrokerMessage): Promise<void> {
    if (reply === undefined) return
    const { peer } = this.#o
    const question = this.endpoint.subjects.questionOf(subject)
    try {
      if (!isQuestion(question)) throw unknownQuestion(question)
      const argument = decodeArgument(bytes)
      if (this.#asks >= this.#settings.maxAsks) {
        throw new ServeError('OVERLOADED', `${this.#asks} questions are open at peer '${peer}'`)
      }
      this.#reply(reply, encodeAnswer(await this.#ask(question, argument)))
    } catch (error) {
      this.#reply(reply, encodeAnswerError(error))
    }
  }

  async #ask(question: Question, argument: unknown): Promise<unknown> {
    this.#asks += 1
    try {
      return await this.#o.answer(question, argument)
    } finally {
      this.#asks -= 1
    }
  }

  #reply(reply: string, bytes: Uint8Array): void {
    const { maxPayload } = this.endpoint.link
    const tooLarge = bytes.byteLength > maxPayload
    const error = messageTooLarge('answer', reply, bytes.byteLength, maxPayload)
    this.endpoint.reply(reply, tooLarge ? encodeAnswerError(error) : bytes)
  }
}

function unknownQuestion(question: string | undefined): ServeError {
  const text = `question '${question ?? ''}': want ${QUESTIONS.join(' or ')}`
  return new ServeError('UNSUPPORTED', text)
}

/** A drain ends when the last call is done; how late that is noticed. */
const IDLE_CHECK_MS = 10
