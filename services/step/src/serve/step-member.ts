import type { PinnedVersion } from '@tutti/api'
import { ServeError } from '@tutti/errors'
import type { BrokerMember, ProcessBase } from '@tutti/server'
import {
  type BrokerFlags,
  openStepEndpoint,
  type RouterCalls,
  readBrokerFlags,
  type StepEndpoint,
  transportFamilies,
} from '@tutti/transport'
import type { Step } from '../step.ts'
import { toEndpointOptions } from './step-endpoint.ts'
import { untilUnpinned } from './until-unpinned.ts'

export interface StepMemberOptions {
  readonly flags: BrokerFlags
  /** Names of the step: its replica and its host. */
  readonly own: { readonly replica: string; readonly host: string }
  /** Function that joins the broker; `openStepEndpoint` if absent. Tests pass their own. */
  readonly openEndpoint?: typeof openStepEndpoint | undefined
}

/** Member that stands for a step on the broker. Until it has joined, it knows no routers, and no routers know it. */
export class StepMember implements BrokerMember {
  readonly role = 'step'
  readonly #shared: ProcessBase
  readonly #options: StepMemberOptions
  readonly #closing = new AbortController()
  #endpoint: StepEndpoint | undefined

  constructor(shared: ProcessBase, options: StepMemberOptions) {
    this.#shared = shared
    this.#options = options
    shared.opened.defer(() =>
      this.#closing.abort(new ServeError('SERVER_STOPPING', 'the step closes')),
    )
  }

  /** Announces the step; routers call it from then on. */
  async join(step: Step): Promise<void> {
    const { clock, log, opened } = this.#shared
    const { flags, own, openEndpoint = openStepEndpoint } = this.#options
    const endpoint = await openEndpoint({
      ...readBrokerFlags(flags),
      member: own.replica,
      clock,
      log,
      ...toEndpointOptions(step, own),
    })
    this.#endpoint = endpoint
    opened.defer(() => endpoint.close())
  }

  /** Finds the routers through which models call other models; undefined until the step has joined. */
  readonly routers = (): RouterCalls | undefined => this.#endpoint?.routers

  /** Resolves once no router has a request that pinned the version. */
  readonly whenUnpinned = (pin: PinnedVersion): Promise<void> => {
    const { replica } = this.#options.own
    const { clock } = this.#shared
    const { signal } = this.#closing
    return untilUnpinned(pin, { replica, clock, member: () => this.#endpoint, signal })
  }

  causes(): readonly string[] {
    return this.#endpoint?.obstacles ?? ['the broker is not connected']
  }

  families(): ReturnType<typeof transportFamilies> {
    return this.#endpoint === undefined ? [] : transportFamilies(this.#endpoint.transport)
  }

  async drain(o: { readonly signal: AbortSignal }): Promise<void> {
    await this.#endpoint?.drain(o)
  }
}
