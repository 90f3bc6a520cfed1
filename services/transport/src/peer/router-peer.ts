import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Heartbeat } from '@tutti/protocol'
import { completeSettings, type PeerSettings } from '../peer-settings.ts'
import type {
  AskOptions,
  FindReplicaExecutor,
  Question,
  RouterPeer,
  RouterPeerOptions,
} from '../peers.ts'
import type { StepDirectory } from '../step-directory.ts'
import { descriptionDigest } from './description-digest.ts'
import { PeerCalls } from './peer-calls.ts'
import { PeerEndpoint, type PeerState } from './peer-endpoint.ts'

/** What a router's peer is opened with. */
export interface OpenRouterPeerOptions extends RouterPeerOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Kept in step with what the steps announce. */
  readonly directory: StepDirectory
  readonly settings?: Partial<PeerSettings>
}

/**
 * Brings a router on the broker: it announces itself, hears the steps, calls them and is called by them until it is closed.
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

class CallingPeer implements RouterPeer {
  readonly endpoint: PeerEndpoint
  readonly executor: FindReplicaExecutor
  readonly #o: OpenRouterPeerOptions
  readonly #calls: PeerCalls
  #isDraining = false
  /** What was described last, and its digest. */
  #described: { readonly as: object; readonly digest: string } | undefined

  constructor(o: OpenRouterPeerOptions, settings: PeerSettings) {
    this.#o = o
    const { broker, peer, clock, log } = o
    this.endpoint = new PeerEndpoint(
      { broker, peer, clock, log, settings },
      {
        role: 'router',
        state: () => this.#state(),
        heard: (heartbeat, what) => this.#heard(heartbeat, what),
        suspected: (suspect, isSuspect) => o.directory.suspect(suspect, isSuspect),
        gone: (now, gone, error, how) => {
          o.directory.remove(gone)
          this.#calls.gone(now, gone, error, how)
          o.stepGone(gone, error)
        },
      },
    )
    const { endpoint } = this
    const { executor, answer } = o
    const describe = (): unknown => o.describe()
    this.#calls = new PeerCalls({
      self: peer,
      endpoint,
      settings,
      clock,
      executor,
      describe,
      answer,
    })
    this.executor = this.#calls.executor
  }

  get isConnected(): boolean {
    return this.endpoint.link.isUp
  }

  get awayMs(): number {
    return this.endpoint.awayMs
  }

  get obstacles(): readonly string[] {
    return this.endpoint.obstacles
  }

  async ask(peer: string, question: Question, argument: unknown, o: AskOptions): Promise<unknown> {
    const answer = await this.#calls.ask(peer, question, argument, o)
    if (question === 'describe') this.#checkDescription(peer, answer)
    return answer
  }

  /** Calls of steps go on being taken: they belong to requests that were admitted, here or at another router. */
  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    const { caller, callee } = this.#calls
    this.#isDraining = true
    await this.endpoint.drain(() => caller.size + callee.size, o.signal)
  }

  close(): Promise<void> {
    return this.endpoint.close()
  }

  #state(): PeerState {
    const { caller, callee } = this.#calls
    return {
      description: this.#digest(),
      inFlight: caller.size,
      queued: 0,
      freeSlots: callee.freeSlots,
      freeBytes: callee.freeBytes,
      draining: this.#isDraining,
      revisions: [],
    }
  }

  #digest(): string {
    const as = this.#o.describe()
    if (this.#described?.as !== as) this.#described = { as, digest: descriptionDigest(as) }
    return this.#described.digest
  }

  /** An answer can come from anybody who may publish here; the next heartbeat names the peer's own. */
  #checkDescription(peer: string, description: unknown): void {
    const named = this.endpoint.membership.latest(peer)?.description
    if (named === descriptionDigest(description)) return
    const why =
      named === undefined ? 'nobody is heard' : 'it is not the one that its heartbeats name'
    throw new ServeError('MALFORMED_MESSAGE', `description of peer '${peer}': ${why}`, {
      details: { replica: peer },
    })
  }

  #heard(heartbeat: Heartbeat, what: 'new' | 'changed' | 'load'): void {
    const { peer, revisions } = heartbeat
    if (heartbeat.role !== 'step') {
      // Who drains may be gone before it answers, and a question without an answer would hold up a drain of this router.
      if (what !== 'load' && !heartbeat.draining) this.#o.routerChanged(peer)
      return
    }
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
}
