import type { Clock, Logger } from '@tutti/chassis'
import { completeSettings, type EndpointSettings } from '../endpoint-settings.ts'
import type {
  AskOptions,
  Question,
  RouterCalls,
  StepEndpoint,
  StepEndpointOptions,
} from '../endpoints.ts'
import { descriptionDigest } from './description-digest.ts'
import type { Endpoint, EndpointState } from './endpoint.ts'
import { type EndpointCalls, openCalls } from './endpoint-calls.ts'
import { RouterChoice } from './router-choice.ts'

/** What a step's member is opened with. */
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
  await member.endpoint.untilUp(settings.firstConnectMs)
  return member
}

class ServingEndpoint implements StepEndpoint {
  readonly endpoint: Endpoint
  readonly routers: RouterCalls
  readonly #o: OpenStepEndpointOptions
  readonly #calls: EndpointCalls
  readonly #stopListening: () => void
  /** Digest of the answer to `describe`; computed when it is needed after a change. */
  #description: string | undefined
  #isDraining = false

  constructor(o: OpenStepEndpointOptions, settings: EndpointSettings) {
    this.#o = o
    const { endpoint, calls } = openCalls(o, settings, {
      role: 'step',
      state: () => this.#state(),
      heard: (heartbeat, what) => routers.heard(heartbeat, what),
      suspected: (suspect, isSuspect) => routers.suspect(suspect, isSuspect),
      gone: (now, gone, error, how) => {
        routers.gone(gone)
        this.#calls.gone(now, gone, error, how)
      },
    })
    this.endpoint = endpoint
    this.#calls = calls
    const routers = new RouterChoice(calls, o.clock)
    this.routers = routers
    this.#stopListening = o.onChange(() => {
      this.#description = undefined
      endpoint.announceSoon()
    })
  }

  get isConnected(): boolean {
    return this.endpoint.link.isUp
  }

  get obstacles(): readonly string[] {
    return this.endpoint.obstacles
  }

  askRouters(
    question: Question,
    argument: unknown,
    o: AskOptions,
  ): Promise<readonly PromiseSettledResult<unknown>[]> {
    const routers = this.endpoint.membership.members('router')
    return Promise.allSettled(
      routers.map((router) => this.#calls.ask(router, question, argument, o)),
    )
  }

  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    const { callee } = this.#calls
    this.#isDraining = true
    callee.drain()
    await this.endpoint.drain(() => callee.size, o.signal)
  }

  async close(): Promise<void> {
    this.#stopListening()
    await this.endpoint.close()
  }

  #state(): EndpointState {
    const { inFlight, queued, freeSlots } = this.#o.load()
    const { callee } = this.#calls
    this.#description ??= descriptionDigest(this.#o.describe())
    return {
      description: this.#description,
      inFlight,
      queued,
      freeSlots: Math.min(freeSlots, callee.freeSlots),
      freeBytes: callee.freeBytes,
      draining: this.#isDraining,
      revisions: this.#o.revisions(),
    }
  }
}
