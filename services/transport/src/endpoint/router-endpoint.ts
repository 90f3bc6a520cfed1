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
import type { EndpointState } from './endpoint.ts'
import type { EndpointCalls } from './endpoint-calls.ts'
import { type MemberAccess, openAccess } from './member-access.ts'

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
  try {
    await member.untilUp(settings.firstConnectMs)
  } catch (error) {
    await member.close()
    throw error
  }
  return member
}

class CallingEndpoint implements RouterEndpoint {
  readonly #o: OpenRouterEndpointOptions
  readonly #access: MemberAccess
  #isDraining = false
  /** The object that was described last, and its digest. */
  #described: { readonly as: object; readonly digest: string } | undefined

  constructor(o: OpenRouterEndpointOptions, settings: EndpointSettings) {
    this.#o = o
    this.#access = openAccess(o, settings, {
      role: 'router',
      state: (calls) => this.#state(calls),
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
    return this.#access.calls.executor
  }

  get isConnected(): boolean {
    return this.#access.endpoint.link.isUp
  }

  get awayMs(): number {
    return this.#access.endpoint.awayMs
  }

  get transport(): TransportCounts {
    return this.#access.endpoint.counts
  }

  get obstacles(): readonly string[] {
    return this.#access.endpoint.obstacles
  }

  get direct(): readonly string[] {
    return this.#access.endpoint.direct?.members ?? []
  }

  get routers(): readonly string[] {
    return this.#access.endpoint.membership.members('router')
  }

  get foreign(): readonly ForeignMember[] {
    return this.#access.endpoint.foreign.all
  }

  untilUp(timeoutMs: number): Promise<void> {
    return this.#access.endpoint.untilUp(timeoutMs)
  }

  async ask(
    member: string,
    question: Question,
    argument: unknown,
    o: AskOptions,
  ): Promise<unknown> {
    const answer = await this.#access.calls.ask(member, question, argument, o)
    if (question === 'describe') checkDescription(this.#access, member, answer)
    return answer
  }

  /** Calls of steps go on being taken: they belong to requests that were admitted, here or at another router. */
  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    this.#isDraining = true
    const { endpoint, calls } = this.#access
    await endpoint.drain(() => calls.caller.size + calls.callee.size, o.signal)
  }

  close(): Promise<void> {
    return this.#access.endpoint.close()
  }

  #state({ caller, callee }: EndpointCalls): EndpointState {
    return {
      description: this.#digest(),
      inFlight: caller.size,
      queued: 0,
      freeSlots: callee.slots.freeSlots,
      freeBytes: callee.slots.freeBytes,
      draining: this.#isDraining,
      revisions: [],
    }
  }

  #digest(): string {
    const as = this.#o.describe()
    if (this.#described?.as !== as) this.#described = { as, digest: descriptionDigest(as) }
    return this.#described.digest
  }

  #heard(heartbeat: Heartbeat, what: Novelty): void {
    const { member, revisions } = heartbeat
    if (member === this.#o.ownStep) return
    if (heartbeat.role !== 'step') {
      // Who drains may be gone before it answers, and a question without an answer would hold up a drain of this router.
      if (what !== 'load' && !heartbeat.draining) this.#o.routerChanged(member)
      return
    }
    const { directory } = this.#o
    if (what === 'load') {
      directory.report(member, heartbeat)
      return
    }
    const served = revisions.map(([model, version, revision]) => ({ model, version, revision }))
    directory.announce({ replica: member }, served, heartbeat)
    // Only a stranger's heartbeat can be the one that is taken back, and it must not cost the member its place.
    directory.drain(member, heartbeat.draining)
    this.#o.stepChanged(member, revisions)
  }
}

/** An answer can come from anybody who may publish here; the next heartbeat names the member's own. */
function checkDescription({ endpoint }: MemberAccess, member: string, description: unknown): void {
  const named = endpoint.membership.latest(member)?.description
  if (named === descriptionDigest(description)) return
  const why =
    named === undefined
      ? 'no heartbeat of it was heard'
      : 'it is not the one that its heartbeats name'
  throw new ServeError('MALFORMED_MESSAGE', `description of member '${member}': ${why}`, {
    details: { replica: member },
  })
}
