import { type Clock, sleep } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { RouterEndpoint } from '@tutti/transport'
import type { StepLink } from './step-link.ts'

/** Steps answer a newcomer's heartbeat at once; two of their own heartbeats fit in any case. */
const DISCOVERY_MS = 600
const DESCRIBING_MS = 5000
const LOOK_EVERY_MS = 20

/** The first moments on the broker, in which the steps that are there announce themselves. */
export class StepDiscovery {
  readonly #closing = new AbortController()
  #isOver = false

  /** False as long as there may be steps that this router does not know yet. */
  get isOver(): boolean {
    return this.#isOver
  }

  /**
   * Resolves when the steps that are there have described themselves, or one did not for some seconds. Without a broker it
   * resolves at once, and the discovery goes on.
   */
  async begin(
    endpoint: Pick<RouterEndpoint, 'isConnected'>,
    steps: Pick<StepLink, 'isSettled'>,
    o: { readonly clock: Clock; readonly signal: AbortSignal },
  ): Promise<void> {
    const signal = AbortSignal.any([o.signal, this.#closing.signal])
    const discovered = this.#discover(endpoint, steps, { clock: o.clock, signal })
    if (endpoint.isConnected) await discovered
    // It ends early with the router only.
    else discovered.catch(() => {})
  }

  close(): void {
    this.#closing.abort(new ServeError('CANCELLED', 'the router closes'))
  }

  async #discover(
    endpoint: Pick<RouterEndpoint, 'isConnected'>,
    steps: Pick<StepLink, 'isSettled'>,
    o: { readonly clock: Clock; readonly signal: AbortSignal },
  ): Promise<void> {
    do {
      while (!endpoint.isConnected) await sleep(LOOK_EVERY_MS, o)
      await sleep(DISCOVERY_MS, o)
    } while (!endpoint.isConnected)
    const until = o.clock.now() + DESCRIBING_MS
    while (!steps.isSettled && o.clock.now() < until) await sleep(LOOK_EVERY_MS, o)
    this.#isOver = true
  }
}
