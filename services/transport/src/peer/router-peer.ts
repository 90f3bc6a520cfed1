import { type Clock, type Logger, signalError } from '@tutti/chassis'
import { type CancelSignal, ServeError } from '@tutti/errors'
import type { Envelope, Heartbeat } from '@tutti/protocol'
import type { TensorRef } from '@tutti/tensor'
import { callDetails, notExecuted } from '../calls/call-place.ts'
import { Caller } from '../calls/caller.ts'
import { completeSettings, type PeerSettings } from '../peer-settings.ts'
import type { RouterPeer, RouterPeerOptions } from '../peers.ts'
import type { StepDirectory } from '../step-directory.ts'
import type { BearerResponse, ReplicaAddress, TensorBearer } from '../tensor-bearer.ts'
import { CallStream } from './call-stream.ts'
import { messageTooLarge } from './message-too-large.ts'
import { PeerEndpoint, type PeerState } from './peer-endpoint.ts'
import { decodeAnswer, encodeArgument, type Question } from './questions.ts'
import { untilIdle } from './until-idle.ts'

/** What a router's peer is opened with. */
export interface OpenRouterPeerOptions extends RouterPeerOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Kept in step with what the steps announce. */
  readonly directory: StepDirectory
  readonly settings?: Partial<PeerSettings>
}

/**
 * Brings a router on the broker: it announces itself, hears the steps and calls them until it is closed.
 *
 * @returns when the broker is there, or after `firstConnectMs` without it; then it goes on trying.
 * @throws ServeError SETTING_INVALID, INVALID_PARAMETER if an option cannot be right.
 */
export async function openRouterPeer(o: OpenRouterPeerOptions): Promise<RouterPeer> {
  const settings = completeSettings(o.settings)
  const peer = new CallingPeer(o, settings)
  await peer.endpoint.untilUp(settings.firstConnectMs)
  return peer
}

class CallingPeer implements RouterPeer, TensorBearer {
  readonly endpoint: PeerEndpoint
  readonly bearer: TensorBearer = this
  readonly #o: OpenRouterPeerOptions
  readonly #settings: PeerSettings
  readonly #caller: Caller
  #isDraining = false

  constructor(o: OpenRouterPeerOptions, settings: PeerSettings) {
    this.#o = o
    this.#settings = settings
    this.endpoint = new PeerEndpoint(
      { broker: o.broker, peer: o.peer, clock: o.clock, log: o.log, settings },
      {
        role: 'router',
        state: () => this.#state(),
        message: (now, message) => this.#caller.on(now, message),
        noResponder: (now, call) => this.#caller.noResponder(now, call),
        heard: (heartbeat, what) => this.#heard(heartbeat, what),
        suspected: (peer, isSuspect) => o.directory.suspect(peer, isSuspect),
        gone: (now, peer, error) => this.#gone(now, peer, error),
        up: () => this.#caller.reconnected(),
        down: (now) => this.#caller.disconnected(now),
        tick: (now) => this.#caller.tick(now),
      },
    )
    const { endpoint } = this
    this.#caller = new Caller({
      settings,
      send: (to, message) => endpoint.send(to, message),
      incoming: endpoint.incoming,
      outgoing: endpoint.outgoing,
      inlineLimits: () => endpoint.inlineLimits,
    })
  }

  get isConnected(): boolean {
    return this.endpoint.link.isUp
  }

  routers(): readonly string[] {
    return this.endpoint.membership.peers('router')
  }

  call(
    to: ReplicaAddress,
    envelope: Envelope,
    tensors: readonly TensorRef[],
    o: { readonly signal: CancelSignal },
  ): AsyncIterable<BearerResponse> {
    const { clock } = this.#o
    const { signal } = o
    let number = 0
    const stream = new CallStream(() => this.#caller.drop(clock.now(), number))
    const onAbort = (): void => this.#caller.cancel(clock.now(), number, signalError(signal))
    try {
      this.#checkCanCall(to.replica, envelope, signal)
      number = this.#caller.open(clock.now(), to.replica, envelope, tensors.map(bytesOf), {
        response: (response, onTaken) => {
          if (response.final) signal.removeEventListener('abort', onAbort)
          stream.send(response, () => onTaken(clock.now()))
        },
        failed: (error) => {
          signal.removeEventListener('abort', onAbort)
          stream.fail(error)
        },
      })
      signal.addEventListener('abort', onAbort, { once: true })
    } catch (error) {
      stream.fail(error)
    }
    return stream
  }

  async ask(
    peer: string,
    question: Question,
    argument: unknown,
    o: { readonly signal: AbortSignal },
  ): Promise<unknown> {
    const { endpoint } = this
    const bytes = encodeArgument(argument)
    const { maxPayload } = endpoint.link
    if (bytes.byteLength > maxPayload) {
      throw messageTooLarge('question', peer, bytes.byteLength, maxPayload)
    }
    const subject = endpoint.subjects.ask(peer, question)
    try {
      const answer = await endpoint.inbox.request(subject, bytes, {
        timeoutMs: this.#settings.askMs,
        signal: o.signal,
      })
      return decodeAnswer(peer, answer)
    } catch (error) {
      throw ServeError.from(error).withDetails({ replica: peer })
    }
  }

  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    this.#isDraining = true
    this.endpoint.events.draining(this.#caller.size)
    this.endpoint.announce()
    const wait = { clock: this.#o.clock, everyMs: IDLE_CHECK_MS, signal: o.signal }
    await untilIdle(() => this.#caller.size, wait)
    this.endpoint.events.drained()
  }

  async close(): Promise<void> {
    this.#isDraining = true
    const now = this.#o.clock.now()
    this.#caller.cancelAll(now, new ServeError('CANCELLED', 'the router closes'))
    await this.endpoint.close()
  }

  #state(): PeerState {
    return {
      description: '',
      inFlight: this.#caller.size,
      queued: 0,
      freeSlots: Math.max(0, this.#settings.maxOpenCalls - this.#caller.size),
      freeBytes: this.#caller.freeBytes,
      draining: this.#isDraining,
      revisions: [],
    }
  }

  #checkCanCall(replica: string, envelope: Envelope, signal: CancelSignal): void {
    if (signal.aborted) throw signalError(signal)
    if (!this.isConnected)
      throw notExecuted(replica, envelope, 'cannot be reached: the broker is away')
    const { unflushedBytes } = this.endpoint.link.control
    const { controlQueueBytes } = this.#settings
    if (unflushedBytes <= controlQueueBytes) return
    throw new ServeError(
      'OVERLOADED',
      `the broker has not taken ${unflushedBytes} bytes, want at most ${controlQueueBytes}`,
      { details: callDetails(replica, envelope) },
    )
  }

  #heard(heartbeat: Heartbeat, what: 'new' | 'changed' | 'load'): void {
    if (heartbeat.role !== 'step') return
    const { peer, revisions } = heartbeat
    const { directory } = this.#o
    if (what === 'load') {
      directory.report(peer, heartbeat)
      return
    }
    const served = revisions.map(([model, version, revision]) => ({ model, version, revision }))
    directory.announce({ replica: peer }, served, heartbeat)
    // Only a stranger's heartbeat can be the one that is taken back, and it must not cost the peer its place.
    directory.drain(peer, heartbeat.draining)
    this.#o.stepChanged(peer, revisions)
  }

  #gone(now: number, peer: string, error: ServeError): void {
    this.#o.directory.remove(peer)
    this.#caller.peerGone(now, peer, 'is gone')
    this.#o.stepGone(peer, error)
  }
}

function bytesOf(tensor: TensorRef): Uint8Array {
  return tensor.bytes
}

/** A drain ends when the last call is done; how late that is noticed. */
const IDLE_CHECK_MS = 10
