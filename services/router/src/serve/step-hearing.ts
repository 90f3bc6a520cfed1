import { type Clock, sleep } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { RouterEndpoint } from '@tutti/transport'
import type { StepLink } from './step-link.ts'

/** Steps answer a newcomer's heartbeat at once; two of their own are enough in any case. */
const HEARING_MS = 600
const DESCRIBING_MS = 5000
const LOOK_EVERY_MS = 20

/** The first while on the broker, in which the steps that are there are heard. */
export class StepHearing {
  readonly #closing = new AbortController()
  #isOver = false

  /** False as long as there may be steps that nobody has heard. */
  get isOver(): boolean {
    return this.#isOver
  }

  /**
   * Resolves when the steps that are there have described themselves, or one did not for some seconds. Without a broker it
   * resolves at once, and the hearing goes on.
   */
  async begin(
    member: Pick<RouterEndpoint, 'isConnected'>,
    steps: Pick<StepLink, 'isSettled'>,
    o: { readonly clock: Clock; readonly signal: AbortSignal },
  ): Promise<void> {
    const signal = AbortSignal.any([o.signal, this.#closing.signal])
    const heard = this.#hear(member, steps, { clock: o.clock, signal })
    if (member.isConnected) await heard
    // It ends early with the router only.
    else heard.catch(() => {})
  }

  close(): void {
    this.#closing.abort(new ServeError('CANCELLED', 'the router closes'))
  }

  async #hear(
    member: Pick<RouterEndpoint, 'isConnected'>,
    steps: Pick<StepLink, 'isSettled'>,
    o: { readonly clock: Clock; readonly signal: AbortSignal },
  ): Promise<void> {
    do {
      while (!member.isConnected) await sleep(LOOK_EVERY_MS, o)
      await sleep(HEARING_MS, o)
    } while (!member.isConnected)
    const until = o.clock.now() + DESCRIBING_MS
    while (!steps.isSettled && o.clock.now() < until) await sleep(LOOK_EVERY_MS, o)
    this.#isOver = true
  }
}
