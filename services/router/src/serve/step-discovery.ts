import { type Clock, sleep } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { RouterEndpoint } from '@tutti/transport'
import type { StepLink } from './step-link.ts'

/** Steps answer a newcomer's heartbeat at once; two of their own heartbeats fit in any case. */
const DISCOVERY_MS = 600
const DESCRIBING_MS = 5000
/**
 * A step that is silent for less is not dead, only slow: routers that heard it before still send it requests, and one that takes
 * over from them must know it. As long as members take to call one dead.
 */
const SILENT_MS = 3000
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
   * Waits until the steps that are there have described themselves, or until one has not done so for some seconds. Without a
   * connected broker it resolves at once, and the discovery goes on.
   *
   * @param o.hasAll - tells whether no step is missing. A missing step may be slow, so the discovery waits for it a little
   *   longer.
   */
  async begin(
    endpoint: Pick<RouterEndpoint, 'isConnected'>,
    steps: Pick<StepLink, 'isSettled'>,
    o: DiscoveryOptions,
  ): Promise<void> {
    const signal = AbortSignal.any([o.signal, this.#closing.signal])
    const discovered = this.#discover(endpoint, steps, { ...o, signal })
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
    o: DiscoveryOptions,
  ): Promise<void> {
    do {
      while (!endpoint.isConnected) await sleep(LOOK_EVERY_MS, o)
      await sleep(DISCOVERY_MS, o)
    } while (!endpoint.isConnected)
    const heardAt = o.clock.now()
    const passed = (): number => o.clock.now() - heardAt
    while (!steps.isSettled && passed() < DESCRIBING_MS) await sleep(LOOK_EVERY_MS, o)
    const isMissed = (): boolean => !o.hasAll() && passed() < SILENT_MS - DISCOVERY_MS
    if (!isMissed()) this.#isOver = true
    // The servers need not wait for that: they say that they are not ready.
    else void this.#awaitMissed(isMissed, o)
  }

  async #awaitMissed(isMissed: () => boolean, o: DiscoveryOptions): Promise<void> {
    // The signal, which is the only thing that ends a sleep early, ends the discovery.
    while (isMissed()) if (!(await slept(o))) return
    this.#isOver = true
  }
}

/** @returns false if the signal has ended the sleep. */
function slept(o: DiscoveryOptions): Promise<boolean> {
  return sleep(LOOK_EVERY_MS, o).then(
    () => true,
    () => false,
  )
}

interface DiscoveryOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly hasAll: () => boolean
}
