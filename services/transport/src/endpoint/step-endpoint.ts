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
import { MemberAccesses } from './member-accesses.ts'
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
  readonly #accesses: MemberAccesses
  readonly #stopListening: () => void
  /** Digest of the answer to `describe`; computed when it is needed after a change. */
  #description: string | undefined
  #isDraining = false

  constructor(o: OpenStepEndpointOptions, settings: EndpointSettings) {
    this.#o = o
    const routers = new RouterChoice(
      {
        executor: (target, router) => this.#accesses.executor(target, router),
        ask: (router, ...asked) => this.#ask(router, ...asked),
      },
      o.clock,
    )
    this.routers = routers
    this.#accesses = new MemberAccesses(o, settings, {
      role: 'step',
      state: (calls) => this.#state(calls),
      listener: routers,
    })
    this.#stopListening = o.onChange(() => {
      this.#description = undefined
      this.#accesses.announceSoon()
    })
  }

  get isConnected(): boolean {
    const { primary } = this.#accesses
    const ways = this.#accesses.members('router').map((router) => this.#accesses.of(router))
    return [primary, ...ways].every(({ endpoint }) => endpoint.link.isUp)
  }

  get transport(): TransportCounts {
    return this.#accesses.transport
  }

  get obstacles(): readonly string[] {
    return this.#accesses.primary.endpoint.obstacles
  }

  untilUp(timeoutMs: number): Promise<void> {
    return this.#accesses.untilUp(timeoutMs)
  }

  askRouters(
    question: Question,
    argument: unknown,
    o: AskOptions,
  ): Promise<readonly PromiseSettledResult<unknown>[]> {
    const routers = this.#accesses.members('router')
    return Promise.allSettled(routers.map((router) => this.#ask(router, question, argument, o)))
  }

  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    this.#isDraining = true
    this.#accesses.refuseWork()
    await this.#accesses.drain(({ callee }) => callee.size, o.signal)
  }

  async close(): Promise<void> {
    this.#stopListening()
    await this.#accesses.close()
  }

  #ask(router: string, ...asked: [Question, unknown, AskOptions]): Promise<unknown> {
    return this.#accesses.of(router).calls.ask(router, ...asked)
  }

  #state({ callee }: EndpointCalls): EndpointState {
    const { inFlight, queued, freeSlots } = this.#o.load()
    this.#description ??= descriptionDigest(this.#o.describe())
    return {
      description: this.#description,
      inFlight,
      queued,
      freeSlots: Math.min(freeSlots, callee.admission.freeSlots),
      freeBytes: callee.admission.freeBytes,
      draining: this.#isDraining,
      revisions: this.#o.revisions(),
    }
  }
}
