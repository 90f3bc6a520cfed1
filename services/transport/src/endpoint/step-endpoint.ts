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
import { Endpoint, type EndpointState } from './endpoint.ts'
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
  await member.opened()
  return member
}

class ServingEndpoint implements StepEndpoint {
  readonly routers: RouterCalls
  readonly #options: OpenStepEndpointOptions
  readonly #endpoint: Endpoint
  readonly #stopListening: () => void
  /** Digest of the answer to `describe`; computed when it is needed after a change. */
  #description: string | undefined
  #isDraining = false

  constructor(o: OpenStepEndpointOptions, settings: EndpointSettings) {
    this.#options = o
    const routers = new RouterChoice(
      {
        executor: (target, router) => this.#endpoint.calls.executor(target, router),
        ask: (router, ...asked) => this.#endpoint.calls.ask(router, ...asked),
      },
      o.clock,
    )
    this.routers = routers
    this.#endpoint = new Endpoint(o, settings, {
      role: 'step',
      state: () => this.#state(),
      listener: routers,
    })
    this.#stopListening = o.onChange(() => {
      this.#description = undefined
      this.#endpoint.announceSoon()
    })
  }

  get isConnected(): boolean {
    return this.#endpoint.link.isUp
  }

  get transport(): TransportCounts {
    return this.#endpoint.counts
  }

  get obstacles(): readonly string[] {
    return this.#endpoint.obstacles
  }

  /** Resolves as `opened` of Endpoint does. If it fails, everything else is closed too. */
  async opened(): Promise<void> {
    try {
      await this.#endpoint.opened()
    } catch (error) {
      this.#stopListening()
      throw error
    }
  }

  askRouters(
    question: Question,
    argument: unknown,
    o: AskOptions,
  ): Promise<readonly PromiseSettledResult<unknown>[]> {
    const { members, calls } = this.#endpoint
    const routers = members.membership.members('router')
    return Promise.allSettled(routers.map((router) => calls.ask(router, question, argument, o)))
  }

  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    this.#isDraining = true
    const { incomingCalls } = this.#endpoint.calls
    incomingCalls.drain()
    await this.#endpoint.drain(() => incomingCalls.size, o.signal)
  }

  async close(): Promise<void> {
    this.#stopListening()
    await this.#endpoint.close()
  }

  #state(): EndpointState {
    const { incomingCalls } = this.#endpoint.calls
    const { inFlight, queued, freeSlots } = this.#options.load()
    this.#description ??= descriptionDigest(this.#options.describe())
    return {
      description: this.#description,
      inFlight,
      queued,
      freeSlots: Math.min(freeSlots, incomingCalls.slots.freeSlots),
      freeBytes: incomingCalls.slots.freeBytes,
      draining: this.#isDraining,
      revisions: this.#options.revisions(),
    }
  }
}
