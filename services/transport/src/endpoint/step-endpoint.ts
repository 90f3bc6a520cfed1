import type { Clock, Logger } from '@tutti/chassis'
import { completeSettings, type EndpointSettings } from '../endpoint-settings.ts'
import type {
  AskOptions,
  Question,
  RouterCalls,
  StepEndpoint,
  StepEndpointOptions,
  TransportCounts,
} from '../endpoints.ts'
import { descriptionDigest } from './description-digest.ts'
import type { EndpointState } from './endpoint.ts'
import type { EndpointCalls } from './endpoint-calls.ts'
import { type MemberAccess, openAccess } from './member-access.ts'
import { RouterChoice } from './router-choice.ts'

/** The options with which a step's member is opened. */
export interface OpenStepEndpointOptions extends StepEndpointOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly settings?: Partial<EndpointSettings>
}

/**
 * Brings a step on the broker: it announces itself, takes calls and answers questions until it is closed.
 *
 * @returns when the broker is there, or after `firstConnectMs` without it; then it goes on trying.
 * @throws ServeError SETTING_INVALID, INVALID_PARAMETER if an option cannot be right.
 */
export async function openStepEndpoint(o: OpenStepEndpointOptions): Promise<StepEndpoint> {
  const settings = completeSettings(o.settings)
  const member = new ServingEndpoint(o, settings)
  try {
    await member.untilUp(settings.firstConnectMs)
  } catch (error) {
    await member.close()
    throw error
  }
  return member
}

class ServingEndpoint implements StepEndpoint {
  readonly routers: RouterCalls
  readonly #o: OpenStepEndpointOptions
  readonly #access: MemberAccess
  readonly #stopListening: () => void
  /** Digest of the answer to `describe`; computed when it is needed after a change. */
  #description: string | undefined
  #isDraining = false

  constructor(o: OpenStepEndpointOptions, settings: EndpointSettings) {
    this.#o = o
    const routers = new RouterChoice(
      {
        executor: (target, router) => this.#access.calls.executor(target, router),
        ask: (router, ...asked) => this.#access.calls.ask(router, ...asked),
      },
      o.clock,
    )
    this.routers = routers
    this.#access = openAccess(o, settings, {
      role: 'step',
      state: (calls) => this.#state(calls),
      listener: routers,
    })
    this.#stopListening = o.onChange(() => {
      this.#description = undefined
      this.#access.endpoint.announceSoon()
    })
  }

  get isConnected(): boolean {
    return this.#access.endpoint.link.isUp
  }

  get transport(): TransportCounts {
    return this.#access.endpoint.counts
  }

  get obstacles(): readonly string[] {
    return this.#access.endpoint.obstacles
  }

  untilUp(timeoutMs: number): Promise<void> {
    return this.#access.endpoint.untilUp(timeoutMs)
  }

  askRouters(
    question: Question,
    argument: unknown,
    o: AskOptions,
  ): Promise<readonly PromiseSettledResult<unknown>[]> {
    const { endpoint, calls } = this.#access
    const routers = endpoint.membership.members('router')
    return Promise.allSettled(routers.map((router) => calls.ask(router, question, argument, o)))
  }

  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    this.#isDraining = true
    const { endpoint, calls } = this.#access
    calls.callee.drain()
    await endpoint.drain(() => calls.callee.size, o.signal)
  }

  async close(): Promise<void> {
    this.#stopListening()
    await this.#access.endpoint.close()
  }

  #state({ callee }: EndpointCalls): EndpointState {
    const { inFlight, queued, freeSlots } = this.#o.load()
    this.#description ??= descriptionDigest(this.#o.describe())
    return {
      description: this.#description,
      inFlight,
      queued,
      freeSlots: Math.min(freeSlots, callee.slots.freeSlots),
      freeBytes: callee.slots.freeBytes,
      draining: this.#isDraining,
      revisions: this.#o.revisions(),
    }
  }
}
