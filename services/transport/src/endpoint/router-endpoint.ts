import type { Clock, Logger } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Heartbeat } from '@tutti/protocol'
import { completeSettings, type EndpointSettings } from '../endpoint-settings.ts'
import type {
  AskOptions,
  FindReplicaExecutor,
  Question,
  RouterEndpoint,
  RouterEndpointOptions,
  TransportCounts,
} from '../endpoints.ts'
import type { ForeignMember } from '../members/foreign-members.ts'
import type { Novelty } from '../members/membership.ts'
import type { StepDirectory } from '../step-directory.ts'
import { descriptionDigest } from './description-digest.ts'
import { Endpoint, type EndpointState } from './endpoint.ts'

/** The options with which a router's member is opened. */
export interface OpenRouterEndpointOptions extends RouterEndpointOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Kept in step with what the steps announce. */
  readonly directory: StepDirectory
  /** The step of the router's own process, which the router is not told of here: it knows it better. */
  readonly ownStep?: string | undefined
  readonly settings?: Partial<EndpointSettings>
}

/**
 * Brings a router on the broker: it announces itself, hears the steps, calls them and is called by them until it is closed.
 *
 * @returns when the broker is there, or after `firstConnectMs` without it; then it goes on trying.
 * @throws ServeError SETTING_INVALID, INVALID_PARAMETER if an option cannot be right.
 */
export async function openRouterEndpoint(o: OpenRouterEndpointOptions): Promise<RouterEndpoint> {
  const settings = completeSettings(o.settings)
  const member = new CallingEndpoint(o, settings)
  await member.opened()
  return member
}

class CallingEndpoint implements RouterEndpoint {
  readonly #options: OpenRouterEndpointOptions
  readonly #endpoint: Endpoint
  #isDraining = false
  /** The object that was described last, and its digest. */
  #described: { readonly as: object; readonly digest: string } | undefined

  constructor(o: OpenRouterEndpointOptions, settings: EndpointSettings) {
    this.#options = o
    this.#endpoint = new Endpoint(o, settings, {
      role: 'router',
      state: () => this.#state(),
      listener: {
        heard: (heartbeat, what) => this.#heard(heartbeat, what),
        suspected: (suspect, isSuspect) => {
          if (suspect !== o.ownStep) o.directory.suspect(suspect, isSuspect)
        },
        gone: (gone, error, endCalls) => {
          if (gone === o.ownStep) return endCalls()
          o.directory.remove(gone)
          endCalls()
          o.stepGone(gone, error)
        },
      },
    })
  }

  get executor(): FindReplicaExecutor {
    return this.#endpoint.calls.executor
  }

  get isConnected(): boolean {
    return this.#endpoint.link.isUp
  }

  get awayMs(): number {
    return this.#endpoint.awayMs
  }

  get transport(): TransportCounts {
    return this.#endpoint.counts
  }

  get obstacles(): readonly string[] {
    return this.#endpoint.obstacles
  }

  get direct(): readonly string[] {
    return this.#endpoint.direct?.members ?? []
  }

  get routers(): readonly string[] {
    return this.#endpoint.members.membership.members('router')
  }

  get foreign(): readonly ForeignMember[] {
    return this.#endpoint.members.foreign.all
  }

  opened(): Promise<void> {
    return this.#endpoint.opened()
  }

  async ask(
    member: string,
    question: Question,
    argument: unknown,
    o: AskOptions,
  ): Promise<unknown> {
    const answer = await this.#endpoint.calls.ask(member, question, argument, o)
    if (question === 'describe') checkDescription(this.#endpoint, member, answer)
    return answer
  }

  /** Calls of steps go on being taken: they belong to requests that were admitted, here or at another router. */
  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    this.#isDraining = true
    const { outgoingCalls, incomingCalls } = this.#endpoint.calls
    await this.#endpoint.drain(() => outgoingCalls.size + incomingCalls.size, o.signal)
  }

  close(): Promise<void> {
    return this.#endpoint.close()
  }

  #state(): EndpointState {
    const { outgoingCalls, incomingCalls } = this.#endpoint.calls
    return {
      description: this.#digest(),
      inFlight: outgoingCalls.size,
      queued: 0,
      freeSlots: incomingCalls.slots.freeSlots,
      freeBytes: incomingCalls.slots.freeBytes,
      draining: this.#isDraining,
      revisions: [],
    }
  }

  #digest(): string {
    const as = this.#options.describe()
    if (this.#described?.as !== as) this.#described = { as, digest: descriptionDigest(as) }
    return this.#described.digest
  }

  #heard(heartbeat: Heartbeat, what: Novelty): void {
    const { member, revisions } = heartbeat
    if (member === this.#options.ownStep) return
    if (heartbeat.role !== 'step') {
      // Who drains may be gone before it answers, and a question without an answer would hold up a drain of this router.
      if (what !== 'load' && !heartbeat.draining) this.#options.routerChanged(member)
      return
    }
    const { directory } = this.#options
    if (what === 'load') {
      directory.report(member, heartbeat)
      return
    }
    const served = revisions.map(([model, version, revision]) => ({ model, version, revision }))
    directory.announce({ replica: member }, served, heartbeat)
    // Only a stranger's heartbeat can be the one that is taken back, and it must not cost the member its place.
    directory.drain(member, heartbeat.draining)
    this.#options.stepChanged(member, revisions)
  }
}

/** Checks a description. An answer can come from anybody who may publish here; the member's next heartbeat names the true one. */
function checkDescription(endpoint: Endpoint, member: string, description: unknown): void {
  const named = endpoint.members.membership.latest(member)?.description
  if (named === descriptionDigest(description)) return
  const why =
    named === undefined
      ? 'no heartbeat of it was heard'
      : 'it is not the one that its heartbeats name'
  throw new ServeError('MALFORMED_MESSAGE', `description of member '${member}': ${why}`, {
    details: { replica: member },
  })
}
